"""Texts cut to fit a model's context together, the longest first."""

from __future__ import annotations

from collections.abc import Sequence

from mgl.llm.base import LLM

__all__ = ["both_ends", "fitted", "leading", "room", "shortened"]

PROMPT_TOKENS = 400
LINE_TOKENS = 8
LEAST_TOKENS = 64
CUT = " […]"


def room(llm: LLM, lines: int, *, reserve: int) -> int:
    """Tokens that so many texts may have together, beside ``reserve`` for the reply and some for
    the prompt around them; negative where the context is too small for any."""
    return llm.context_tokens - reserve - PROMPT_TOKENS - LINE_TOKENS * lines


async def fitted(llm: LLM, texts: Sequence[str], *, reserve: int) -> list[str]:
    """The texts, with the longest cut short where together they do not fit the model's context.

    Where there is hardly any ``room`` they have ``LEAST_TOKENS``.
    """
    most = max(LEAST_TOKENS, room(llm, len(texts), reserve=reserve))
    if sum(len(text.encode(errors="replace")) for text in texts) <= most:
        return list(texts)
    counts = await llm.count_tokens(texts)
    if sum(counts) <= most:
        return list(texts)
    each = _level(counts, most)
    return [
        text if count <= each else await _cut(llm, text, count, each)
        for text, count in zip(texts, counts, strict=True)
    ]


async def shortened(llm: LLM, texts: Sequence[str], most: int) -> list[str]:
    """The texts, each cut where it has more than ``most`` tokens."""
    counts = await llm.count_tokens(texts) if texts else []
    return [
        text if count <= most else await _cut(llm, text, count, most)
        for text, count in zip(texts, counts, strict=True)
    ]


async def leading(llm: LLM, texts: Sequence[str], most: int) -> list[str]:
    """The first texts that together have no more than ``most`` tokens."""
    kept: list[str] = []
    for text, count in zip(texts, await llm.count_tokens(texts) if texts else [], strict=True):
        most -= count
        if most < 0:
            break
        kept.append(text)
    return kept


async def both_ends(llm: LLM, text: str, most: int) -> tuple[str, ...]:
    """The text; where it has more than ``most`` tokens, its first and its last half of as many, or
    nothing where not even these fit."""
    (count,) = await llm.count_tokens([text])
    kept: tuple[str, ...] = (text,) if text else ()
    size, half = len(text), len(text) // 2
    while kept and count > most:
        half = min(size * most // count // 2, half * 7 // 8)
        kept = (text[:half], text[len(text) - half :]) if half else ()
        size = 2 * half
        (count,) = await llm.count_tokens(["\n\n".join(kept)])
    return kept


async def _cut(llm: LLM, text: str, count: int, most: int) -> str:
    """The beginning of a text of ``count`` tokens with the sign that it was cut, together no more
    than ``most``; nothing where not even the sign has room.

    Tokens are not spread evenly over characters, so what is left is counted again.
    """
    kept = text
    while kept and count > most:
        kept = kept[: min(len(kept) * most // count, len(kept) * 7 // 8)]
        (count,) = await llm.count_tokens([kept + CUT])
    return kept and kept + CUT


def _level(counts: Sequence[int], room: int) -> int:
    """The most tokens that each may have, for all to have no more than ``room``."""
    left, rest = room, len(counts)
    for count in sorted(counts):
        if count * rest > left:
            break
        left, rest = left - count, rest - 1
    return left // max(1, rest)
