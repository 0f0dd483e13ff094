"""A document in windows of at most so many tokens, each sharing its first with the one before.

    windows = await window_document(document, 200, 50, engine.count_tokens)

Source: HGMem §4.2 (200 tokens, of which adjacent chunks share 50). A window begins and ends
between words; a word of very many tokens, and a script that writes without spaces, is divided.
Tokens are counted for words, each with the white space before it, and summed; the finished
windows are counted again, and made with a smaller sum where one has too many.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from mgl.errors import UsageError
from mgl.text.pieces import FRAGMENT, Counter, Piece, fragments, refined
from mgl.types import Chunk, Document

__all__ = ["runs", "window_document"]

_WORD: Final = re.compile(r"\S+")


async def window_document(
    document: Document, max_tokens: int, overlap_tokens: int, count: Counter
) -> list[Chunk]:
    """Windows in reading order that together hold every character of the text.

    Each begins after the one before and ends after it; adjacent ones share whole words, of
    ``overlap_tokens`` at most. ``count`` gives the tokens of each text. Raises UsageError if one
    character has more tokens than ``max_tokens``.
    """
    if not 0 <= overlap_tokens < max_tokens:
        raise UsageError(
            f"windows of {max_tokens} tokens cannot share {overlap_tokens}",
            hint="let them share fewer tokens than they have, 0 or more",
        )
    text = document.text
    if not text:
        return []
    bounds, tokens = await _words(text, max_tokens, overlap_tokens, count)
    limit, shared = max_tokens, overlap_tokens
    while limit > 0:
        windows = [(bounds[a], bounds[b]) for a, b in runs(tokens, limit, shared)]
        texts = [text[start:end] for start, end in windows]
        common = [text[later[0] : before[1]] for before, later in pairwise(windows)]
        counts = await count([*texts, *common])
        over = max(counts[: len(texts)]) - max_tokens
        over_shared = max(counts[len(texts) :], default=0) - overlap_tokens
        if over <= 0 and over_shared <= 0:
            return [
                Chunk(index, document.span(start, end), words, tokens)
                for index, ((start, end), words, tokens) in enumerate(
                    zip(windows, texts, counts, strict=False)
                )
            ]
        limit, shared = limit - max(0, over), shared - max(0, over_shared)
    raise UsageError(
        f"a text that was counted as {max_tokens} tokens or fewer is counted as more than that",
        hint="the token counter must give the same count for the same text",
    )


async def _words(
    text: str, max_tokens: int, overlap_tokens: int, count: Counter
) -> tuple[Sequence[int], Sequence[int]]:
    """Where words end (from 0 on), and the tokens of each; white space belongs to what follows."""
    ends = array("q", (found.end() for found in _WORD.finditer(text)))
    if ends:
        ends[-1] = len(text)
    bounds = array("q", [0, *(ends or [len(text)])])
    words = {text[a:b]: 0 for a, b in pairwise(bounds)}
    words.update(zip(words, await count(list(words)), strict=True))
    tokens = array("q", (words[text[a:b]] for a, b in pairwise(bounds)))
    most = max(1, (overlap_tokens or max_tokens) // 2)
    long = [
        Piece(bounds[place], bounds[place + 1], number, FRAGMENT)
        for place, number in enumerate(tokens)
        if number > most
    ]
    if not long:
        return bounds, tokens
    parts = iter(await _divided(text, long, most, max_tokens, count))
    all_bounds, all_tokens = array("q", [0]), array("q")
    for end, number in zip(bounds[1:], tokens, strict=True):
        while number > most and (part := next(parts)).end < end:
            all_bounds.append(part.end)
            all_tokens.append(part.tokens)
        all_bounds.append(end)
        all_tokens.append(number if number <= most else part.tokens)
    return all_bounds, all_tokens


async def _divided(
    text: str, words: Sequence[Piece], most: int, max_tokens: int, count: Counter
) -> list[Piece]:
    """Words in parts of ``most`` tokens, or of one character that has no more than
    ``max_tokens``."""

    def divide(text: str, piece: Piece) -> list[tuple[int, int, int]]:
        if piece.end - piece.start == 1 and piece.tokens <= max_tokens:
            return [(piece.start, piece.end, FRAGMENT)]
        return fragments(text, piece, max_tokens if piece.end - piece.start == 1 else most)

    parts = list(words)
    while any(part.tokens > most and part.end - part.start > 1 for part in parts):
        parts = await refined(text, parts, most, count, divide)
    return await refined(text, parts, max_tokens, count, divide)


def runs(tokens: Sequence[int], limit: int, shared: int) -> list[tuple[int, int]]:
    """Runs of words, or of other things with so many tokens each, of ``limit`` tokens or of one
    thing: first, and one behind the last. Each begins with the last of the one before, of
    ``shared`` tokens at most."""
    windows: list[tuple[int, int]] = []
    first = stop = total = 0
    while stop < len(tokens):
        while stop < len(tokens) and (stop == first or total + tokens[stop] <= limit):
            total += tokens[stop]
            stop += 1
        windows.append((first, stop))
        if stop < len(tokens):
            room = min(shared, limit - tokens[stop])
            start, total = stop, 0
            while start - 1 > first and total + tokens[start - 1] <= room:
                start -= 1
                total += tokens[start]
            first = start
    return windows
