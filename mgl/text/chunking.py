"""A document in chunks of at most so many tokens, counted by the model that will read them.

    chunks = await chunk_document(document, 8192, engine.count_tokens)
    assert "".join(chunk.text for chunk in chunks) == document.text

A chunk ends at a paragraph if one ends in its second half (rather not at a heading), else at a
sentence, else at white space, else anywhere. Tokens are counted for pieces (paragraphs; sentences
of long paragraphs; fragments of overlong sentences) and summed; the finished chunks are counted
again, and one that is larger than its pieces is divided.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mgl.errors import UsageError
from mgl.text.sentences import paragraph_starts, sentence_spans
from mgl.types import Chunk, Document

__all__ = ["Counter", "chunk_document"]

Counter = Callable[[Sequence[str]], Awaitable[list[int]]]

_PARAGRAPH, _SENTENCE, _FRAGMENT = 2, 1, 0
_JOINERS = "\u200d\ufe0e\ufe0f"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A range of the text, its tokens, and what ends with it."""

    start: int
    end: int
    tokens: int
    ends: int


async def chunk_document(document: Document, max_tokens: int, count: Counter) -> list[Chunk]:
    """Chunks in reading order that together are the document's text, character for character.

    ``count`` gives the tokens of each text. Raises UsageError if one character has more tokens
    than ``max_tokens``.
    """
    if max_tokens < 1:
        raise UsageError(
            f"chunks of {max_tokens} tokens hold nothing", hint="use at least 1, usually thousands"
        )
    text = document.text
    groups = _packed(await _pieces(text, max_tokens, count), max_tokens)
    while True:
        texts = [text[group[0].start : group[-1].end] for group in groups]
        counts = await count(texts) if texts else []
        if all(tokens <= max_tokens for tokens in counts):
            break
        groups = [
            part
            for group, tokens in zip(groups, counts, strict=True)
            for part in (_halves(group, max_tokens) if tokens > max_tokens else [group])
        ]
    return [
        Chunk(index, document.span(group[0].start, group[-1].end), words, tokens)
        for index, (group, words, tokens) in enumerate(zip(groups, texts, counts, strict=True))
    ]


async def _pieces(text: str, limit: int, count: Counter) -> list[_Piece]:
    """The text in pieces of at most ``limit`` tokens, as coarse as serves a chunk's end."""
    bounds = [*paragraph_starts(text), len(text)] if text else []
    paragraphs = [
        (a, b, _FRAGMENT if _is_heading(text[a:b].strip()) else _PARAGRAPH)
        for a, b in pairwise(bounds)
    ]
    pieces = await _counted(text, paragraphs, count)
    pieces = await _refined(text, pieces, max(1, limit // 4), count, _sentences)
    while any(piece.tokens > limit for piece in pieces):
        pieces = await _refined(text, pieces, limit, count, lambda t, p: _fragments(t, p, limit))
    return pieces


def _is_heading(paragraph: str) -> bool:
    """Whether a paragraph announces the next one, so that no chunk should end with it."""
    return len(paragraph) <= 80 and "\n" not in paragraph and paragraph[-1:].isalnum()


async def _refined(
    text: str,
    pieces: Sequence[_Piece],
    limit: int,
    count: Counter,
    divide: Callable[[str, _Piece], list[tuple[int, int, int]]],
) -> list[_Piece]:
    """The pieces, those above ``limit`` tokens divided and counted anew in one batch."""
    divided = {
        index: parts
        for index, piece in enumerate(pieces)
        if piece.tokens > limit and len(parts := divide(text, piece)) > 1
    }
    fresh = iter(await _counted(text, [p for parts in divided.values() for p in parts], count))
    result: list[_Piece] = []
    for index, piece in enumerate(pieces):
        if index in divided:
            result.extend(next(fresh) for _ in divided[index])
        else:
            result.append(piece)
    return result


async def _counted(
    text: str, ranges: Sequence[tuple[int, int, int]], count: Counter
) -> list[_Piece]:
    if not ranges:
        return []
    tokens = await count([text[start:end] for start, end, _ in ranges])
    return [_Piece(a, b, n, ends) for (a, b, ends), n in zip(ranges, tokens, strict=True)]


def _sentences(text: str, piece: _Piece) -> list[tuple[int, int, int]]:
    spans = sentence_spans(text, piece.start, piece.end)
    bounds = [piece.start, *(start for start, _ in spans[1:]), piece.end]
    return _ranges(bounds, _SENTENCE, piece.ends)


def _fragments(text: str, piece: _Piece, limit: int) -> list[tuple[int, int, int]]:
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
    return _ranges([*bounds, piece.end], _FRAGMENT, piece.ends)


def _ranges(bounds: Sequence[int], ends: int, last: int) -> list[tuple[int, int, int]]:
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


def _packed(pieces: Sequence[_Piece], limit: int) -> list[list[_Piece]]:
    """Pieces in groups of at most ``limit`` tokens, each ending as well as its second half lets."""
    groups: list[list[_Piece]] = []
    first = 0
    while first < len(pieces):
        total, stop, best = 0, first, (-1, first)
        while stop < len(pieces) and total + pieces[stop].tokens <= limit:
            total += pieces[stop].tokens
            if total * 2 >= limit:
                best = max(best, (pieces[stop].ends, stop))
            stop += 1
        if stop < len(pieces) and best[0] >= 0:
            stop = best[1] + 1
        groups.append(list(pieces[first:stop]))
        first = stop
    return groups


def _halves(group: list[_Piece], limit: int) -> Iterator[list[_Piece]]:
    if len(group) == 1:
        raise UsageError(
            f"a text counted as {group[0].tokens} tokens is counted again as more than {limit}",
            hint="the token counter must give the same count for the same text",
        )
    middle = len(group) // 2
    yield group[:middle]
    yield group[middle:]
