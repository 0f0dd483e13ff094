"""Unpack a GGUF file into a folder that a model server loads; run by the server's own Python.

    python -P dense.py weights.gguf folder

Model servers read safetensors: the quantised values are unpacked to bfloat16 once, which takes a
minute a gigabyte and five times the file's size on disk. The folder appears under its name when it
is whole, so an interruption leaves nothing that looks finished.

It runs where torch, transformers, gguf and accelerate are and mgl is not: it imports nothing of
mgl, and ``-P`` keeps the modules beside it from being taken for those of the standard library.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def unpack(gguf: Path, folder: Path) -> None:
    """Write the model and its tokenizer as ``folder``, which must not be there yet."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    tokenizer = AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        str(gguf.parent),
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(str(part))
    tokenizer.save_pretrained(str(part))
    part.rename(folder)


if __name__ == "__main__":
    gguf, folder = (Path(argument).absolute() for argument in sys.argv[1:])
    if (folder / "config.json").is_file():
        print(f"{folder} is there already")
    elif gguf.is_file():
        unpack(gguf, folder)
    else:
        sys.exit(f"there is no file {gguf}")
