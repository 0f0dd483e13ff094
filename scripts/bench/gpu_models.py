"""Models that are made where the card is: a publisher's configuration, and no weights.

    folder = make_model("qwen2.5-7b-instruct", Path("made"), tokenizer)

vLLM starts them with ``--load-format dummy``: time and memory are those of the real model, replies
are noise. The tokenizer is that of any Qwen2.5.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mgl.errors import ResourceError
from mgl.models.profiles import Architecture, ModelProfile, load_profile

TOKENIZER_FILES: Final = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")

_QWEN: Final = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "bos_token_id": 151643,
    "eos_token_id": 151645,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 32768,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "vocab_size": 152064,
}
_7B = {"hidden_size": 3584, "num_attention_heads": 28, "num_hidden_layers": 28}
_7B |= {"intermediate_size": 18944, "num_key_value_heads": 4}
_14B = {"hidden_size": 5120, "num_attention_heads": 40, "num_hidden_layers": 48}
_32B = {**_14B, "num_hidden_layers": 64, "intermediate_size": 27648}
_AWQ = {"bits": 4, "group_size": 128, "quant_method": "awq", "version": "gemm", "zero_point": True}
CONFIGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "qwen2.5-7b-instruct": {**_QWEN, **_7B},
    "qwen2.5-14b-instruct": {**_QWEN, **_14B, "intermediate_size": 13824},
    "qwen2.5-32b-instruct-awq-yarn": {
        **_QWEN,
        **_32B,
        "torch_dtype": "float16",
        "quantization_config": _AWQ,
    },
    "qwen2.5-32b-instruct": {**_QWEN, **_32B},
}
"""The publisher's config.json of each model."""

TINY: Final = "made-tiny"
_SMALL = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2}
_SMALL |= {"intermediate_size": 512, "num_key_value_heads": 2}
MADE: Final = {**CONFIGS, TINY: {**_QWEN, **_SMALL}}
"""CONFIGS, and one that a CPU runs fast."""

_LOGGED: Final = {
    "weights_gib": re.compile(r"[Ll]oading took ([\d.]+) Gi?B"),
    "cache_tokens": re.compile(r"KV cache size: ([\d,]+) tokens"),
}


def make_model(name: str, folder: Path, tokenizer: Path) -> Path:
    """Write a model folder without weights; ResourceError if the tokenizer's is none."""
    if not (tokenizer / TOKENIZER_FILES[0]).is_file():
        raise ResourceError(
            f"{tokenizer} has no tokenizer.json", hint="--tokenizer names the folder of a Qwen2.5"
        )
    place = folder / name
    place.mkdir(parents=True, exist_ok=True)
    (place / "config.json").write_text(json.dumps(MADE[name], indent=1), encoding="utf-8")
    for file in (tokenizer / each for each in TOKENIZER_FILES):
        if file.is_file():
            shutil.copy(file, place)
    return place


def make_profile(name: str) -> ModelProfile:
    """A model profile for a made model that mgl ships none for."""
    config, like = MADE[name], load_profile("qwen2.5-7b-instruct")
    wide, layers, heads = (
        config[each] for each in ("hidden_size", "num_hidden_layers", "num_key_value_heads")
    )
    head = wide // config["num_attention_heads"]
    attention = 2 * wide * (wide + heads * head) + wide + 2 * heads * head
    layer = attention + 3 * wide * config["intermediate_size"] + 2 * wide
    architecture = Architecture(
        parameters=layers * layer + wide + 2 * config["vocab_size"] * wide,
        dtype=config["torch_dtype"],
        layers=layers,
        kv_heads=heads,
        head_dim=head,
    )
    return like.model_copy(update={"name": name, "architecture": architecture})


def read_log(text: str) -> dict[str, float]:
    """What vLLM's log says of memory: weights on one device, and tokens that its cache holds."""
    found = {name: pattern.findall(text) for name, pattern in _LOGGED.items()}
    return {name: float(all_[-1].replace(",", "")) for name, all_ in found.items() if all_}
