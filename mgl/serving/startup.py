"""How far a starting server is, read off the lines of its log.

    stage_of("Loading safetensors checkpoint shards:  50% Completed | 2/4")

The words are vLLM 0.32's; a line that it does not know says nothing.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["stage_of"]

_STAGES: Final = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"Loading [\w ]*checkpoint shards:\s+(\d+)%", "loading weights {0}%"),
        (r"Starting to load model", "loading weights"),
        (r"Capturing CUDA graphs?[^%]*?(\d+)%", "capturing CUDA graphs {0}%"),
        (r"Capturing CUDA graph", "capturing CUDA graphs"),
        (r"Warming up model for the compilation|Start(?:ing)? compil|Dynamo bytecode transform"
         r"|Compiling a graph|torch\.compile takes", "compiling"),
        (r"KV cache size|Available KV cache memory|for KV cache on node", "making the KV cache"),
        (r"Initializing a V1 LLM engine", "starting the engine"),
        (r"Starting vLLM(?: API)? server on", "opening the port"),
        (r"non-default args", "reading the model's configuration"),
    )
)  # fmt: skip


def stage_of(line: str) -> str | None:
    """What a line of the log says the server is doing, or None."""
    for pattern, said in _STAGES:
        if match := pattern.search(line):
            return said.format(*match.groups())
    return None
