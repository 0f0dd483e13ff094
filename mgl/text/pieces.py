"""Pieces of a text with their tokens: what chunks and windows are put together from.

A piece that has too many tokens is divided, and the parts are counted anew in one batch.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mgl.errors import UsageError

__all__ = ["FRAGMENT", "Counter", "Piece", "counted", "fragments", "ranges", "refined"]

Counter = Callable[[Sequence[str]], Awaitable[list[int]]]

FRAGMENT = 0
_JOINERS = "\u200d\ufe0e\ufe0f"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of the text, its tokens, and what ends with it (a higher number ends better)."""

    start: int
    end: int
    tokens: int
    ends: int


async def refined(
    text: str,
    pieces: Sequence[Piece],
    limit: int,
    count: Counter,
    divide: Callable[[str, Piece], list[tuple[int, int, int]]],
) -> list[Piece]:
    """The pieces, those above ``limit`` tokens divided and counted anew in one batch."""
    divided = {
        index: parts
        for index, piece in enumerate(pieces)
        if piece.tokens > limit and len(parts := divide(text, piece)) > 1
    }
    fresh = iter(await counted(text, [p for parts in divided.values() for p in parts], count))
    result: list[Piece] = []
    for index, piece in enumerate(pieces):
        if index in divided:
            result.extend(next(fresh) for _ in divided[index])
        else:
            result.append(piece)
    return result


async def counted(text: str, parts: Sequence[tuple[int, int, int]], count: Counter) -> list[Piece]:
    """Ranges (start, end, what ends with it) as pieces, counted in one batch."""
    if not parts:
        return []
    tokens = await count([text[start:end] for start, end, _ in parts])
    return [Piece(a, b, n, ends) for (a, b, ends), n in zip(parts, tokens, strict=True)]


def fragments(text: str, piece: Piece, limit: int) -> list[tuple[int, int, int]]:
    """A piece in parts that should have about three quarters of ``limit`` tokens, cut behind white
    space where there is some. UsageError for a single character, which cannot be divided."""
    length = piece.end - piece.start
    if length == 1:
        raise UsageError(
            f"chunks of {limit} tokens cannot hold the character {text[piece.start]!r}, "
            f"which has {piece.tokens}",
            hint=f"use chunks of at least {piece.tokens} tokens",
        )
    size = max(1, min(length // 2, length * limit * 3 // (piece.tokens * 4)))
    bounds = [piece.start]
    while piece.end - bounds[-1] > size:
        bounds.append(_soft_cut(text, bounds[-1], bounds[-1] + size))
    return ranges([*bounds, piece.end], FRAGMENT, piece.ends)


def ranges(bounds: Sequence[int], ends: int, last: int) -> list[tuple[int, int, int]]:
    """The ranges between bounds: what ends with each, and with the ``last``."""
    parts = [(a, b, ends) for a, b in pairwise(bounds)]
    parts[-1] = (*parts[-1][:2], last)
    return parts


def _soft_cut(text: str, start: int, ideal: int) -> int:
    """A place in (start, ideal] to cut: behind white space, else not inside a character."""
    middle = (start + ideal) // 2
    space = max(text.rfind(mark, middle, ideal) for mark in " \n\t\u3000")
    if space >= 0:
        return space + 1
    for cut in range(ideal, max(start, ideal - 16), -1):
        if not _glued(text[cut - 1], text[cut]):
            return cut
    return ideal


def _glued(before: str, after: str) -> bool:
    return (
        unicodedata.combining(after) > 0
        or after in _JOINERS
        or before == "\u200d"
        or _SKIN_TONES[0] <= after <= _SKIN_TONES[1]
        or (before == "\r" and after == "\n")
    )
