"""Texts cut to fit a model's context together, the longest first."""

from __future__ import annotations

from collections.abc import Sequence

from mgl.llm.base import LLM

__all__ = ["fitted"]

PROMPT_TOKENS = 400
LINE_TOKENS = 8
CUT = " […]"


async def fitted(llm: LLM, texts: Sequence[str], *, reserve: int) -> list[str]:
    """The texts, with the longest cut short where together they do not fit the model's context.

    ``reserve`` tokens are left for the reply, and some for the prompt around the texts.
    """
    room = max(64, llm.context_tokens - reserve - PROMPT_TOKENS - LINE_TOKENS * len(texts))
    if sum(len(text.encode(errors="replace")) for text in texts) <= room:
        return list(texts)
    counts = await llm.count_tokens(texts)
    if sum(counts) <= room:
        return list(texts)
    most = _level(counts, room)
    return [
        text if count <= most else text[: max(1, len(text) * most // count)] + CUT
        for text, count in zip(texts, counts, strict=True)
    ]


def _level(counts: Sequence[int], room: int) -> int:
    """The most tokens that each may have, for all to have no more than ``room``."""
    left, rest = room, len(counts)
    for count in sorted(counts):
        if count * rest > left:
            break
        left, rest = left - count, rest - 1
    return left // max(1, rest)
