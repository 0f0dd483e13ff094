"""Prompts for small, plain questions about a text, and texts cut to fit a model's context.

Every method that asks about a piece of text in its own words asks as the careful reader, so that
methods differ only in what they read. Prompt ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.llm.base import LLM, Message
from mgl.prompt import Prompt

SYSTEM = Prompt(
    "reading.system",
    source="ours",
    text="You are a careful reader. You answer only from the given text.",
)

PROMPT_TOKENS = 400
LINE_TOKENS = 8
LEAST_TOKENS = 64
CUT = " […]"


def reader_messages(prompt: str) -> list[Message]:
    """Put a prompt under the careful reader's system message."""
    return [Message("system", SYSTEM.text), Message("user", prompt)]


def available_tokens(llm: LLM, texts: int, *, reserve: int) -> int:
    """The tokens that ``texts`` texts may have together, beside ``reserve`` for the reply and
    some for the prompt around them; negative if the context is too small for any."""
    return llm.context_tokens - reserve - PROMPT_TOKENS - LINE_TOKENS * texts


async def fit_texts(llm: LLM, texts: Sequence[str], *, reserve: int) -> list[str]:
    """Cut the longest texts so that together they fit ``available_tokens``, or ``LEAST_TOKENS``
    if that is less."""
    most = max(LEAST_TOKENS, available_tokens(llm, len(texts), reserve=reserve))
    if sum(len(text.encode(errors="replace")) for text in texts) <= most:
        return list(texts)
    counts = await llm.count_tokens(texts)
    if sum(counts) <= most:
        return list(texts)
    left, rest = most, len(counts)
    for count in sorted(counts):
        if count * rest > left:
            break
        left, rest = left - count, rest - 1
    each = left // max(1, rest)
    return [
        text if count <= each else await _cut(llm, text, count, each)
        for text, count in zip(texts, counts, strict=True)
    ]


async def shorten(llm: LLM, texts: Sequence[str], most: int) -> list[str]:
    """Cut each text that has more than ``most`` tokens."""
    counts = await llm.count_tokens(texts) if texts else []
    return [
        text if count <= most else await _cut(llm, text, count, most)
        for text, count in zip(texts, counts, strict=True)
    ]


async def take_leading(llm: LLM, texts: Sequence[str], most: int) -> list[str]:
    """Take the first texts that together have at most ``most`` tokens."""
    kept: list[str] = []
    for text, count in zip(texts, await llm.count_tokens(texts) if texts else [], strict=True):
        most -= count
        if most < 0:
            break
        kept.append(text)
    return kept


async def keep_both_ends(llm: LLM, text: str, most: int) -> tuple[str, ...]:
    """The text, or its first and last part of equal length if it has more than ``most`` tokens;
    nothing if not even these fit."""
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
    """The beginning of a text of ``count`` tokens and the mark that it was cut, together at most
    ``most`` tokens; empty if the mark alone does not fit.

    Tokens are not spread evenly over characters, so what is left is counted again.
    """
    kept = text
    while kept and count > most:
        kept = kept[: min(len(kept) * most // count, len(kept) * 7 // 8)]
        (count,) = await llm.count_tokens([kept + CUT])
    return kept and kept + CUT
