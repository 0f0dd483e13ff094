"""What a server's prefix cache saves of a build's prompts, beside what it could save at most.

A server keeps the prompts it has read in blocks of tokens, and computes a later prompt from its
first different block on. So the cacheable part of a prompt is its longest common prefix with any
earlier prompt of the build, in the server's own tokens, without its last token (which is always
computed), in whole blocks. What was cached is what the server counted.

The contrast is the same build with the lines of the graph reordered for each call.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel
from traffic import RecordingEngine, Work, build_all

from mgl.errors import UsageError
from mgl.memories.base import MemoryKind


@dataclass(frozen=True, slots=True)
class PrefixShare:
    """Tokens of one build's prompts: all, cacheable, and cached.

    ``counted`` is the server's own count of cached tokens, which covers this build only if
    ``alone``; ``cached`` is the sum over its replies (0 if the server leaves it out).
    """

    stable: bool
    prompts: int
    tokens: int
    cacheable: int
    cached: int
    counted: int
    block_tokens: int
    alone: bool

    @property
    def of_cacheable(self) -> float | None:
        """The cached share of what could be cached; None if nothing could."""
        return self.counted / self.cacheable if self.cacheable else None

    @property
    def of_all(self) -> float:
        return self.counted / max(1, self.tokens)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"of_cacheable": self.of_cacheable, "of_all": self.of_all}


def common_prefix(left: Sequence[int], right: Sequence[int]) -> int:
    """Count the tokens that two prompts begin with in common."""
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return min(len(left), len(right))


def count_cacheable(prompts: Sequence[Sequence[int]], block: int) -> list[int]:
    """Count the tokens of each prompt that a cache of such blocks can hold from earlier ones."""
    found = []
    for place, prompt in enumerate(prompts):
        shared = max((common_prefix(prompt, earlier) for earlier in prompts[:place]), default=0)
        found.append(min(shared, len(prompt) - 1) // block * block)
    return found


async def measure_prefix(
    engine: RecordingEngine,
    kind: MemoryKind,
    config: BaseModel,
    works: Sequence[Work],
    *,
    stable: bool = True,
) -> PrefixShare:
    """Build the memories one call at a time, under a salt of their own, and count."""
    before = await engine.read_counters()
    if before.block_tokens is None:
        raise UsageError(
            "the server does not report the block size of its cache",
            hint="use a vLLM server of 0.12 or newer with --enable-prefix-caching",
        )
    engine.begin(secrets.token_hex(8), None if stable else random.Random(0))
    await build_all(engine, kind, config, works, concurrency=1)
    sent = [one for one in engine.sent if one.completed]
    counted = await engine.count_since(before, len(sent))
    prompts = [await engine.tokenize_prompt(one) for one in sent]
    return PrefixShare(
        stable=stable,
        prompts=len(prompts),
        tokens=sum(map(len, prompts)),
        cacheable=sum(count_cacheable(prompts, before.block_tokens)),
        cached=sum(one.cached_tokens for one in sent),
        counted=counted.prefix_hits,
        block_tokens=before.block_tokens,
        alone=counted.requests == len(sent),
    )
