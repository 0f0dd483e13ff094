"""Encoders on OpenVINO, without torch: embedders and cross-encoders of BERT's family.

    embedder = EncoderEmbedder(folder, model_id="all-minilm-l6-v2@53aa51172d14", dims=384)
    judge = encoder_judge(folder, max_tokens=512)

The graph is put together here from OpenVINO's operators and the folder's safetensors, so it needs
neither torch nor a conversion: BERT (MiniLM), MPNet (relative positions) and XLM-RoBERTa (bge-m3,
bge-reranker). Vectors are those of sentence-transformers in float32 to the sixth digit.
"""

from __future__ import annotations

import importlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mgl.errors import MglError, ResourceError
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.computing import read_json, run_model, to_utf8
from mgl.retrieval.embedders import unit_vectors

FAMILY: Final = ("bert", "mpnet", "xlm-roberta")
BATCH: Final = 32

BESIDE: Final = 0.9
"""On LoCoMo's five development conversations 0.8 and 1 find as much, within a hundredth."""

_MOST_KEPT: Final = 60_000
"""Tokens, of 384 numbers each in MiniLM: 90 MB, or 1,500 turns of a chat."""

Array = NDArray[np.float32]
Head = Literal["mean", "first", "score", "tokens"]


def is_encoder(folder: Path) -> bool:
    """Whether the model in a folder is one that runs here: of the family, with safetensors and a
    fast tokenizer, and pooled by the mean or the first token."""
    try:
        config = read_json(folder / "config.json")
        steps = read_json(folder / "modules.json", [])
        pooling = _read_pooling(folder)
    except ResourceError:
        return False
    files = (folder / "model.safetensors", folder / "tokenizer.json")
    simple = {"Transformer", "Pooling", "Normalize"}
    return (
        config.get("model_type") in FAMILY
        and config.get("hidden_act", "gelu") == "gelu"
        and all(file.is_file() for file in files)
        and all(step["type"].rsplit(".", 1)[-1] in simple for step in steps)
        and pooling is not None
    )


class Encoder:
    """A compiled encoder and its tokenizer: texts, or pairs of them, to one row of numbers each.

    ``head`` is what a row is: the ``mean`` of the last hidden states, the state of the ``first``
    token, the ``score`` of a classifier with one label, or, of all its ``tokens``, their states
    (``run_tokens``). Texts are truncated at ``max_tokens``.
    Raises ResourceError where the folder does not load. Thread-safe.
    """

    def __init__(self, folder: Path, head: Head, max_tokens: int) -> None:
        try:
            self._tokenizer = _load_tokenizer(folder, max_tokens)
            self._model: Any = _compile(folder, head)
        except MglError:
            raise
        except Exception as error:
            raise ResourceError(
                f"the encoder in {folder} cannot be loaded: {error}",
                hint="fetch its weights again with `mgl models get`",
            ) from error
        self._working = threading.Lock()

    def run(self, texts: Sequence[str], after: Sequence[str] | None = None) -> Array:
        """Encode texts, or pairs of a text and what comes ``after`` it: shape (n, dims)."""
        return np.array([row for row, _ in self._run(texts, after)], dtype=np.float32)

    def run_tokens(self, texts: Sequence[str]) -> list[Array]:
        """The last states of each text's tokens: shape (tokens, dims)."""
        return [row[:size] for row, size in self._run(texts, None)]

    def _run(self, texts: Sequence[str], after: Sequence[str] | None) -> list[tuple[Array, int]]:
        """What the graph gives for each text, and how many tokens it has."""
        first = to_utf8(texts)
        given: Sequence[Any] = first
        if after is not None:
            given = list(zip(first, to_utf8(after), strict=True))
        encoded = self._tokenizer.encode_batch(given)
        rows: list[Any] = [None] * len(encoded)
        order = sorted(range(len(encoded)), key=lambda at: len(encoded[at].ids))
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            longest = max(len(encoded[at].ids) for at in places)
            ids, types, mask = (np.zeros((len(places), longest), np.int64) for _ in range(3))
            for row, at in enumerate(places):
                size = len(encoded[at].ids)
                ids[row, :size], types[row, :size] = encoded[at].ids, encoded[at].type_ids
                mask[row, :size] = 1
            with self._working:
                found = self._model([ids, types, mask])[0]
            for row, at in enumerate(places):
                rows[at] = found[row].copy(), len(encoded[at].ids)
        return rows

    def close(self) -> None:
        """Free the model."""
        self._model = None


class EncoderEmbedder:
    """An embedder of BERT's family, loaded by the constructor (under a second)."""

    def __init__(
        self, folder: Path, *, model_id: str, dims: int, query_prefix: str | None = None
    ) -> None:
        """``dims`` below the model's own truncates its vectors; ``query_prefix`` precedes a query,
        None leaves that to the folder's configuration. Raises ResourceError."""
        self.model_id = model_id
        self.dims = dims
        prompts = read_json(folder / "config_sentence_transformers.json", {}).get("prompts", {})
        self._prefix = prompts.get("query", "") if query_prefix is None else query_prefix
        limit = read_json(folder / "sentence_bert_config.json", {}).get("max_seq_length")
        limit = limit or _read_limit(folder)
        self._encoder = Encoder(folder, _read_pooling(folder) or "mean", limit)

    def embed(self, texts: Sequence[str], *, task: EmbeddingTask = "passage") -> Array:
        prefix = self._prefix if task == "query" else ""
        with run_model(self.model_id):
            raw = self._encoder.run([prefix + text for text in texts]) if texts else ()
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def close(self) -> None:
        self._encoder.close()


def encoder_judge(folder: Path, max_tokens: int) -> Callable[[str, Sequence[str]], Array]:
    """Load a cross-encoder with one label, such as ms-marco-MiniLM; logits become probabilities.

    Query and text together are truncated at ``max_tokens``, or at the model's own limit. Raises
    ResourceError.
    """
    encoder = Encoder(folder, "score", min(max_tokens, _read_limit(folder)))

    def judge(query: str, texts: Sequence[str]) -> Array:
        logits = encoder.run([query] * len(texts), texts)[:, 0]
        return np.asarray(1 / (1 + np.exp(-logits)), dtype=np.float32)

    return judge


class InteractionJudge:
    """An encoder that judges by late interaction: a sigmoid of slope · ``match_tokens`` + offset.

    Texts are encoded alone, and the states of as many tokens as ``_MOST_KEPT`` are kept. The
    constructor raises ResourceError. Not thread-safe.
    """

    def __init__(self, folder: Path, max_tokens: int, slope: float, offset: float) -> None:
        self._encoder = Encoder(folder, "tokens", min(max_tokens, _read_limit(folder)))
        self._slope, self._offset = slope, offset
        self._kept: OrderedDict[str, Array] = OrderedDict()

    def __call__(
        self, query: str, texts: Sequence[str], around: Sequence[Sequence[int]] = ()
    ) -> Array:
        """P(relevant) of each text; ``around`` has the places of those that stand beside it."""
        kept = self._kept
        missing = [text for text in dict.fromkeys(texts) if text not in kept]
        fresh = map(_normalize, self._encoder.run_tokens(missing))
        kept.update(zip(missing, fresh, strict=True))
        asked = self._encoder.run_tokens([query])[0]
        found = match_tokens(_normalize(asked), [kept[text] for text in texts], around)
        size = sum(map(len, kept.values()))
        while size > _MOST_KEPT:
            size -= len(kept.popitem(last=False)[1])
        return np.asarray(1 / (1 + np.exp(-(self._slope * found + self._offset))), np.float32)


def match_tokens(
    query: Array, texts: Sequence[Array], around: Sequence[Sequence[int]] = ()
) -> Array:
    """The mean, over a query's tokens, of the best cosine with one of each text's: shape (n,).

    Each is given by its tokens' states, of unit length. After ColBERT (Khattab and Zaharia, SIGIR
    2020), which sums them. A cosine with a text that stands ``around`` another counts for that
    ``BESIDE`` as much (ours).
    """
    starts = np.cumsum([0, *map(len, texts[:-1])])
    cosines = query @ np.concatenate(texts).T
    best = np.maximum.reduceat(cosines, starts, axis=1)
    own = best.copy()
    for place, others in enumerate(around):
        for other in others:
            np.maximum(own[:, place], BESIDE * best[:, other], out=own[:, place])
    means: Array = own.mean(0)
    return means


def _normalize(rows: Array) -> Array:
    found: Array = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return found


def _load_tokenizer(folder: Path, max_tokens: int) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # [SEP] in a text is text
    tokenizer.enable_truncation(max_tokens, strategy="longest_first")
    return tokenizer


def _compile(folder: Path, head: Head) -> Any:
    from mgl.llm.engines.openvino import import_genai

    import_genai()  # openvino without its telemetry
    openvino = importlib.import_module("openvino")
    config = read_json(folder / "config.json")
    from safetensors.numpy import load_file

    weights = load_file(folder / "model.safetensors")
    prefix = f"{config['model_type'].replace('xlm-', '')}."
    named = {name.removeprefix(prefix): value for name, value in weights.items()}
    model = _Graph(config, named).build(head)
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    return openvino.Core().compile_model(model, "CPU", settings)


class _Graph:
    """Builds an encoder's graph from its ``config`` and its weights by name."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, Any]) -> None:
        self._ops = importlib.import_module("openvino.opset13")
        self._config, self._weights = config, weights
        self._heads = int(config["num_attention_heads"])

    def build(self, head: Head) -> Any:
        openvino, ops = importlib.import_module("openvino"), self._ops
        ids, types, mask = (
            ops.parameter([-1, -1], np.int64, name=name) for name in ("ids", "types", "mask")
        )
        kept = ops.convert(mask, np.float32)
        barred = ops.multiply(ops.subtract(kept, np.float32(1)), np.float32(1e9))
        bias = ops.unsqueeze(barred, ops.constant(np.array([1, 2], np.int64)))
        state, length = self._embed(ids, types, mask)
        if self._config["model_type"] == "mpnet":
            bias = ops.add(bias, self._relative(length))
        for layer in range(int(self._config["num_hidden_layers"])):
            state = self._layer(state, bias, f"encoder.layer.{layer}.")
        return openvino.Model([self._pool(state, kept, head)], [ids, types, mask], "encoder")

    def _embed(self, ids: Any, types: Any, mask: Any) -> tuple[Any, Any]:
        """The sum of a token's embeddings, and how many tokens a row has."""
        ops, kind = self._ops, self._config["model_type"]
        size = ops.gather(ops.shape_of(ids), np.int64(1), np.int64(0))
        if kind == "bert":
            places = ops.range(np.int64(0), size, np.int64(1), "i64")
        else:  # positions are counted from beyond that of the padding
            padding = np.int64(self._config.get("pad_token_id", 1))
            counted = ops.multiply(ops.cum_sum(mask, np.int64(1)), mask)
            places = ops.add(counted, padding)
        state = self._look_up("embeddings.word_embeddings", ids)
        state = ops.add(state, self._look_up("embeddings.position_embeddings", places))
        if kind != "mpnet":
            state = ops.add(state, self._look_up("embeddings.token_type_embeddings", types))
        return self._normalize(state, "embeddings.LayerNorm"), size

    def _layer(self, state: Any, bias: Any, name: str) -> Any:
        ops, mpnet = self._ops, self._config["model_type"] == "mpnet"
        attention = f"{name}attention."
        own = [f"attn.{part}" for part in "qkv"]
        if not mpnet:
            own = [f"self.{part}" for part in ("query", "key", "value")]
        query, key, value = (self._split(self._dense(state, attention + part)) for part in own)
        mixed = ops.scaled_dot_product_attention(query, key, value, bias)
        joined = ops.reshape(
            ops.transpose(mixed, np.array([0, 2, 1, 3])), np.array([0, 0, -1]), special_zero=True
        )
        out = self._dense(joined, attention + ("attn.o" if mpnet else "output.dense"))
        norm = attention + ("LayerNorm" if mpnet else "output.LayerNorm")
        state = self._normalize(ops.add(out, state), norm)
        inner = ops.gelu(self._dense(state, f"{name}intermediate.dense"), "erf")
        out = self._dense(inner, f"{name}output.dense")
        return self._normalize(ops.add(out, state), f"{name}output.LayerNorm")

    def _pool(self, state: Any, kept: Any, head: Head) -> Any:
        ops = self._ops
        if head == "tokens":
            return state
        if head == "mean":
            weight = ops.unsqueeze(kept, ops.constant(np.int64(2)))
            total = ops.reduce_sum(ops.multiply(state, weight), np.array([1]))
            return ops.divide(total, ops.reduce_sum(weight, np.array([1])))
        first = ops.gather(state, np.int64(0), np.int64(1))
        if head == "first":
            return first
        if "classifier.weight" in self._weights:  # BERT's head
            pooled = ops.tanh(self._dense(first, "pooler.dense"))
            return self._dense(pooled, "classifier")
        return self._dense(ops.tanh(self._dense(first, "classifier.dense")), "classifier.out_proj")

    def _relative(self, length: Any) -> Any:
        """MPNet's bias of attention by the distance of two tokens: shape (1, heads, n, n)."""
        ops = self._ops
        table = self._weights["encoder.relative_attention_bias.weight"].astype(np.float32)
        most = int(self._config["max_position_embeddings"])
        buckets = _bucket_distances(most, len(table))
        whole = ops.constant(table[buckets].transpose(2, 0, 1)[None])
        end = ops.unsqueeze(length, np.int64(0))
        begin, step = np.array([0], np.int64), np.array([1], np.int64)
        rows = ops.slice(whole, begin, end, step, np.array([2], np.int64))
        return ops.slice(rows, begin, end, step, np.array([3], np.int64))

    def _split(self, state: Any) -> Any:
        """Rows of ``dims`` numbers to heads: shape (n, heads, tokens, dims / heads)."""
        shape = np.array([0, 0, self._heads, -1])
        parted = self._ops.reshape(state, shape, special_zero=True)
        return self._ops.transpose(parted, np.array([0, 2, 1, 3]))

    def _look_up(self, name: str, places: Any) -> Any:
        table = self._ops.constant(self._weights[f"{name}.weight"].astype(np.float32))
        return self._ops.gather(table, places, np.int64(0))

    def _dense(self, state: Any, name: str) -> Any:
        weight = self._ops.constant(self._weights[f"{name}.weight"].astype(np.float32))
        product = self._ops.matmul(state, weight, False, True)
        return self._ops.add(product, self._weights[f"{name}.bias"].astype(np.float32))

    def _normalize(self, state: Any, name: str) -> Any:
        ops, epsilon = self._ops, float(self._config["layer_norm_eps"])
        scaled = ops.mvn(state, np.array([-1]), True, epsilon, "INSIDE_SQRT")
        weight, bias = (self._weights[f"{name}.{part}"] for part in ("weight", "bias"))
        product = ops.multiply(scaled, weight.astype(np.float32))
        return ops.add(product, bias.astype(np.float32))


def _bucket_distances(size: int, buckets: int) -> NDArray[np.int64]:
    """MPNet's bucket of each pair of places: half for each direction, half of those exact, the
    others growing by logarithm up to a distance of 128 (Song et al., 2020, after T5)."""
    distance = np.arange(size)[:, None] - np.arange(size)[None, :]
    half, exact = buckets // 2, buckets // 4
    far = np.abs(distance)
    grown = np.log(np.maximum(far, 1) / exact) / np.log(128 / exact) * (half - exact)
    large = np.minimum(exact + grown.astype(np.int64), half - 1)
    found: NDArray[np.int64] = np.where(distance < 0, half, 0) + np.where(far < exact, far, large)
    return found


def _read_pooling(folder: Path) -> Head | None:
    """How a folder's vectors are pooled; None where it is in a way that is not known here."""
    settings = read_json(folder / "1_Pooling" / "config.json", {})
    chosen = [name for name, value in settings.items() if name.startswith("pooling_mode") and value]
    known: dict[str, Head] = {
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_cls_token": "first",
    }
    if not chosen:
        return "mean"
    return known.get(chosen[0]) if len(chosen) == 1 else None


def _read_limit(folder: Path) -> int:
    """How many tokens a model takes, by its positions."""
    config = read_json(folder / "config.json")
    beyond = 0 if config["model_type"] == "bert" else int(config.get("pad_token_id", 1)) + 1
    return int(config["max_position_embeddings"]) - beyond
