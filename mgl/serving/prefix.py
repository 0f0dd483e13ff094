"""What of a build's prompts a server's prefix cache saves, beside what it could save at all.

A server keeps the prompts that it has read in blocks of so many tokens, and reads a later prompt
from the first block on that is different. So what can be cached of a prompt is its longest common
prefix with any prompt before it in the build, in tokens of the server's own tokenizer, without its
last token (which is always read), in whole blocks. What was cached is what the server counted.

The contrast is the same build with the lines of the graph in another order for each call.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel

from mgl.errors import UsageError
from mgl.memories.base import MemoryKind
from mgl.serving.building import Work, build_all
from mgl.serving.tapped import TappedEngine

__all__ = ["PrefixShare", "cacheable", "common", "measure_prefix"]


@dataclass(frozen=True, slots=True)
class PrefixShare:
    """Tokens of one build's prompts: all, those that could be cached, those that were.

    ``counted`` is the server's own count of the latter, which is of this build only if ``alone``;
    ``cached`` adds up what its replies said (0 where they do not say it).
    """

    order: str
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
        """What was cached of what could be; None where nothing could."""
        return self.counted / self.cacheable if self.cacheable else None

    @property
    def of_all(self) -> float:
        return self.counted / max(1, self.tokens)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"of_cacheable": self.of_cacheable, "of_all": self.of_all}


def common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two prompts begin with in common."""
    for place, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return place
    return min(len(left), len(right))


def cacheable(prompts: Sequence[Sequence[int]], block: int) -> list[int]:
    """Tokens of each prompt that a cache of such blocks can hold from the prompts before it."""
    found = []
    for place, prompt in enumerate(prompts):
        shared = max((common(prompt, earlier) for earlier in prompts[:place]), default=0)
        found.append(min(shared, len(prompt) - 1) // block * block)
    return found


async def measure_prefix(
    engine: TappedEngine,
    kind: MemoryKind,
    config: BaseModel,
    works: Sequence[Work],
    *,
    order: str,
    stable: bool = True,
) -> PrefixShare:
    """Build the memories one after another, one call at a time, under a salt of their own."""
    before = await engine.told()
    if before.block_tokens is None:
        raise UsageError(
            "the server does not tell the size of its cache's blocks",
            hint="use a vLLM server of 0.12 or newer with --enable-prefix-caching",
        )
    engine.begin(secrets.token_hex(8), None if stable else random.Random(0))
    await build_all(engine, kind, config, works, concurrency=1)
    sent = [one for one in engine.sent if one.done]
    counted = await engine.since(before, len(sent))
    prompts = [await engine.prompt_ids(one) for one in sent]
    return PrefixShare(
        order=order,
        stable=stable,
        prompts=len(prompts),
        tokens=sum(map(len, prompts)),
        cacheable=sum(cacheable(prompts, before.block_tokens)),
        cached=sum(one.cached_tokens for one in sent),
        counted=counted.prefix_hits,
        block_tokens=before.block_tokens,
        alone=counted.requests == len(sent),
    )
