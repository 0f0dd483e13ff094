"""GGUF files of small decoders with random weights, and what such a decoder predicts.

    vocabulary = read_vocabulary(smollm2_weights)  # seconds
    decoder = write_decoder(tmp_path / "m.gguf", "qwen3", vocabulary)
    decoder.predict(ids)

The layout is that of the published files: Q4_K and Q6_K weights, a bias of query, key and value in
qwen2, a norm of query and key in qwen3, whose heads are wider than hidden size / heads. The
tokenizer is that of another GGUF file, cut after ``VOCABULARY`` tokens. ``predict`` is the same
model in NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Architecture = Literal["qwen2", "qwen3"]
Floats = NDArray[np.float64]

VOCABULARY = 4096
HIDDEN, HEADS, KV_HEADS, FEED, LAYERS = 256, 4, 2, 512, 2
HEAD: Mapping[Architecture, int] = {"qwen2": HIDDEN // HEADS, "qwen3": 128}
ROPE_BASE, EPSILON = 1e6, 1e-6
MOSTLY_Q4_K_M = 15
USER_DEFINED = 4  # a type of tokens: added, as Qwen3 has <think>

TEMPLATE = """\
{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}\
{% if enable_thinking is defined and enable_thinking is false %}\
{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"""
"""Leaves thinking out when it is told to, as Qwen3's does."""


@dataclass(frozen=True)
class Decoder:
    """One such model: ``files``, the first one first, and its weights."""

    files: list[Path]
    architecture: Architecture
    weights: Mapping[str, Floats]

    def predict(self, ids: Sequence[int]) -> Floats:
        """The log-probability of each token of the vocabulary after these."""
        length, width = len(ids), HEAD[self.architecture]
        angles = np.arange(length)[:, None] * ROPE_BASE ** (-np.arange(width // 2) / (width // 2))
        hidden = self.weights["token_embd.weight"][list(ids)]
        for layer in range(LAYERS):
            own = _Layer(self.weights, f"blk.{layer}.")
            normed = own.norm(hidden, "attn_norm")
            query, key, value = (own.project(normed, f"attn_{each}") for each in "qkv")
            query, key, value = (
                each.reshape(length, -1, width).swapaxes(0, 1) for each in (query, key, value)
            )
            if self.architecture == "qwen3":
                query, key = own.norm(query, "attn_q_norm"), own.norm(key, "attn_k_norm")
            query, key = _rotate(query, angles), _rotate(key, angles)
            key, value = (np.repeat(each, HEADS // KV_HEADS, axis=0) for each in (key, value))
            scores = query @ key.swapaxes(1, 2) / np.sqrt(width)
            scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
            read = (np.exp(_log_softmax(scores)) @ value).swapaxes(0, 1).reshape(length, -1)
            hidden = hidden + own.project(read, "attn_output")
            normed = own.norm(hidden, "ffn_norm")
            gate = own.project(normed, "ffn_gate")
            fed = gate / (1 + np.exp(-gate)) * own.project(normed, "ffn_up")
            hidden = hidden + own.project(fed, "ffn_down")
        last = _normalise(hidden[-1], self.weights["output_norm.weight"])
        output = self.weights.get("output.weight", self.weights["token_embd.weight"])
        return _log_softmax(output @ last)


@dataclass(frozen=True)
class _Layer:
    weights: Mapping[str, Floats]
    prefix: str

    def norm(self, values: Floats, name: str) -> Floats:
        return _normalise(values, self.weights[f"{self.prefix}{name}.weight"])

    def project(self, values: Floats, name: str) -> Floats:
        bias = self.weights.get(f"{self.prefix}{name}.bias", np.zeros(1))
        projected: Floats = values @ self.weights[f"{self.prefix}{name}.weight"].T + bias
        return projected


def _normalise(values: Floats, scale: Floats) -> Floats:
    square = (values * values).mean(axis=-1, keepdims=True)
    normed: Floats = values / np.sqrt(square + EPSILON) * scale
    return normed


def _rotate(values: Floats, angles: Floats) -> Floats:
    first, second = np.split(values, 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)


def _log_softmax(values: Floats) -> Floats:
    moved = values - values.max(axis=-1, keepdims=True)
    logs: Floats = moved - np.log(np.exp(moved).sum(axis=-1, keepdims=True))
    return logs


@dataclass(frozen=True)
class Vocabulary:
    """Byte-pair encoding. ``pre`` names how text is split first; ``types`` has one per token."""

    pre: str
    tokens: list[str]
    types: list[int]
    merges: list[str]


def read_vocabulary(source: Path, control: Mapping[int, str]) -> Vocabulary:
    """Read the first tokens of a GGUF file, and the merges that make them.

    ``control`` has further control tokens by the id whose token they replace.
    """
    import gguf

    fields = gguf.GGUFReader(source).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()[:VOCABULARY]
    types = fields["tokenizer.ggml.token_type"].contents()[:VOCABULARY]
    known = set(tokens)
    merges = [
        merge
        for merge in fields["tokenizer.ggml.merges"].contents()
        if merge.replace(" ", "") in known
    ]
    for number, token in control.items():
        tokens[number], types[number] = token, USER_DEFINED
    return Vocabulary(fields["tokenizer.ggml.pre"].contents(), tokens, types, merges)


def write_decoder(
    path: Path,
    architecture: Architecture,
    vocabulary: Vocabulary,
    *,
    tensors_a_file: int = 0,
) -> Decoder:
    """Write a decoder, with ``tensors_a_file`` split as llama.cpp does it."""
    import gguf

    rng: Any = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, architecture, split_max_tensors=tensors_a_file)
    writer.add_file_type(MOSTLY_Q4_K_M)
    writer.add_block_count(LAYERS)
    writer.add_context_length(2048)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FEED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD[architecture])
    writer.add_value_length(HEAD[architecture])
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(vocabulary.pre)
    writer.add_token_list(vocabulary.tokens)
    writer.add_token_types(vocabulary.types)
    writer.add_token_merges(vocabulary.merges)
    writer.add_eos_token_id(vocabulary.tokens.index("<|im_end|>"))
    writer.add_chat_template(TEMPLATE)
    weights: dict[str, Floats] = {}

    def add(name: str, shape: tuple[int, ...], kind: str, scale: float) -> None:
        if kind == "F32":
            values = (float("norm" in name) + scale * rng.normal(size=shape)).astype(np.float32)
            writer.add_tensor(name, values)
            weights[name] = values.astype(np.float64)
            return
        chosen = gguf.GGMLQuantizationType[kind]
        packed = (_pack_q4_k if kind == "Q4_K" else _pack_q6_k)(rng, shape, scale)
        writer.add_tensor(name, packed, raw_dtype=chosen)
        weights[name] = gguf.dequantize(packed, chosen).astype(np.float64)

    queries, keys = HEADS * HEAD[architecture], KV_HEADS * HEAD[architecture]
    tied = architecture == "qwen3"
    add("token_embd.weight", (VOCABULARY, HIDDEN), "Q6_K", HIDDEN**-0.5 if tied else 1.0)
    for layer in range(LAYERS):
        prefix = f"blk.{layer}."
        for name, rows, columns, kind in (
            ("attn_q", queries, HIDDEN, "Q4_K"),
            ("attn_k", keys, HIDDEN, "Q4_K"),
            ("attn_v", keys, HIDDEN, "Q6_K"),
            ("attn_output", HIDDEN, queries, "Q4_K"),
            ("ffn_gate", FEED, HIDDEN, "Q4_K"),
            ("ffn_up", FEED, HIDDEN, "Q4_K"),
            ("ffn_down", HIDDEN, FEED, "Q6_K"),
        ):
            add(f"{prefix}{name}.weight", (rows, columns), kind, columns**-0.5)
            if architecture == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                add(f"{prefix}{name}.bias", (rows,), "F32", 0.1)
        for name in ("attn_norm", "ffn_norm"):
            add(f"{prefix}{name}.weight", (HIDDEN,), "F32", 0.1)
        if architecture == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                add(f"{prefix}{name}.weight", (HEAD[architecture],), "F32", 0.1)
    add("output_norm.weight", (HIDDEN,), "F32", 0.1)
    if not tied:
        add("output.weight", (VOCABULARY, HIDDEN), "Q6_K", HIDDEN**-0.5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    files = sorted(path.parent.glob(f"{path.stem}-*.gguf")) if tensors_a_file else [path]
    return Decoder(files, architecture, weights)


def _pack_q4_k(rng: Any, shape: tuple[int, ...], scale: float) -> NDArray[np.uint8]:
    """Blocks of 256 weights: half-precision scales d and m, eight pairs of 6 bits, and 4 bits each.

    Scale and minimum of a pair are equal and m = 8 d, so that the weights are scattered around 0.
    """
    blocks: Any = np.zeros((shape[0] * shape[1] // 256, 144), dtype=np.uint8)
    pairs = rng.integers(8, 64, (len(blocks), 8), dtype=np.uint8)
    first, last = pairs[:, :4], pairs[:, 4:]
    step = scale / (36 * 4.6)  # the mean of a scale, and the deviation of 4 bits
    blocks[:, :4] = np.array([step, 8 * step], dtype=np.float16).view(np.uint8)
    blocks[:, 4:8] = blocks[:, 8:12] = first | (last >> 4) << 6
    blocks[:, 12:16] = (last & 15) | (last & 15) << 4
    blocks[:, 16:] = rng.integers(0, 256, (len(blocks), 128))
    packed: NDArray[np.uint8] = blocks.reshape(shape[0], -1)
    return packed


def _pack_q6_k(rng: Any, shape: tuple[int, ...], scale: float) -> NDArray[np.uint8]:
    """Blocks of 256 weights: 6 bits each, sixteen scales of 8 bits, a half-precision scale."""
    blocks: Any = np.zeros((shape[0] * shape[1] // 256, 210), dtype=np.uint8)
    blocks[:, :192] = rng.integers(0, 256, (len(blocks), 192))
    blocks[:, 192:208] = rng.integers(16, 64, (len(blocks), 16))
    step = scale / (40 * 18.5)  # the mean of a scale, and the deviation of 6 bits
    blocks[:, 208:] = np.array([step], dtype=np.float16).view(np.uint8)
    packed: NDArray[np.uint8] = blocks.reshape(shape[0], -1)
    return packed
