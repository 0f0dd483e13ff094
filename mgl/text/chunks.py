"""Chunks and windows of a document, of at most so many tokens by the model that will read them.

chunks = await chunk_document(document, 8192, engine.count_tokens)
assert "".join(chunk.text for chunk in chunks) == document.text
windows = await window_document(document, 200, 50, engine.count_tokens)
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from mgl.errors import UsageError
from mgl.text.sentences import paragraph_starts, sentence_spans
from mgl.types import Chunk, Document

Counter = Callable[[Sequence[str]], Awaitable[list[int]]]

FRAGMENT = 0
_JOINERS = "\u200d\ufe0e\ufe0f"
_SKIN_TONES = ("\U0001f3fb", "\U0001f3ff")


@dataclass(frozen=True, slots=True)
class _Piece:
    """A range of a text, its tokens, and what ends with it: a higher number is a better end."""

    start: int
    end: int
    tokens: int
    ends: int


async def _refine(
    text: str,
    pieces: Sequence[_Piece],
    limit: int,
    count: Counter,
    divide: Callable[[str, _Piece], list[tuple[int, int, int]]],
) -> list[_Piece]:
    """Divide the pieces above ``limit`` tokens, and count their parts in one batch."""
    divided = {
        index: parts
        for index, piece in enumerate(pieces)
        if piece.tokens > limit and len(parts := divide(text, piece)) > 1
    }
    fresh = iter(await _count_pieces(text, [p for parts in divided.values() for p in parts], count))
    result: list[_Piece] = []
    for index, piece in enumerate(pieces):
        if index in divided:
            result.extend(next(fresh) for _ in divided[index])
        else:
            result.append(piece)
    return result


async def _count_pieces(
    text: str, parts: Sequence[tuple[int, int, int]], count: Counter
) -> list[_Piece]:
    """Count ranges (start, end, what ends with it) in one batch."""
    if not parts:
        return []
    tokens = await count([text[start:end] for start, end, _ in parts])
    return [_Piece(a, b, n, ends) for (a, b, ends), n in zip(parts, tokens, strict=True)]


def _divide(text: str, piece: _Piece, limit: int) -> list[tuple[int, int, int]]:
    """Divide a piece into parts of about three quarters of ``limit`` tokens, at white space.

    Raises UsageError for a single character.
    """
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
    return _label_ranges([*bounds, piece.end], FRAGMENT, piece.ends)


def _label_ranges(bounds: Sequence[int], ends: int, last: int) -> list[tuple[int, int, int]]:
    """Pair bounds into ranges, with what ends with each, and with the ``last``."""
    parts = [(a, b, ends) for a, b in pairwise(bounds)]
    parts[-1] = (*parts[-1][:2], last)
    return parts


def _soft_cut(text: str, start: int, ideal: int) -> int:
    """Choose where to cut in (start, ideal]: after white space, else between characters."""
    middle = (start + ideal) // 2
    space = max(text.rfind(mark, middle, ideal) for mark in " \n\t\u3000")
    if space >= 0:
        return space + 1
    for cut in range(ideal, max(start, ideal - 16), -1):
        if not _is_one_character(text[cut - 1], text[cut]):
            return cut
    return ideal


def _is_one_character(before: str, after: str) -> bool:
    return (
        unicodedata.combining(after) > 0
        or after in _JOINERS
        or before == "\u200d"
        or _SKIN_TONES[0] <= after <= _SKIN_TONES[1]
        or (before == "\r" and after == "\n")
    )


_PARAGRAPH, _SENTENCE = 2, 1


async def chunk_document(document: Document, max_tokens: int, count: Counter) -> list[Chunk]:
    """Cut a document into chunks that together are its text, character for character.

    A chunk ends at a paragraph if one ends in its second half (rather not at a heading), else at a
    sentence, else at white space, else anywhere. Tokens are counted for pieces and summed; finished
    chunks are counted again, and one larger than its pieces is divided. ``count`` gives the tokens
    of each text. Raises UsageError if one character has more tokens than ``max_tokens``.
    """
    if max_tokens < 1:
        raise UsageError(
            f"chunks cannot have {max_tokens} tokens", hint="use at least 1, usually thousands"
        )
    text = document.text
    groups = _pack(await _pieces(text, max_tokens, count), max_tokens)
    while True:
        texts = [text[group[0].start : group[-1].end] for group in groups]
        counts = await count(texts) if texts else []
        if all(tokens <= max_tokens for tokens in counts):
            break
        groups = [
            part
            for group, tokens in zip(groups, counts, strict=True)
            for part in (_halve(group) if tokens > max_tokens else [group])
        ]
    return [
        Chunk(index, document.span(group[0].start, group[-1].end), words, tokens)
        for index, (group, words, tokens) in enumerate(zip(groups, texts, counts, strict=True))
    ]


async def _pieces(text: str, limit: int, count: Counter) -> list[_Piece]:
    """Cut a text into pieces of at most ``limit`` tokens, no finer than chunks' ends need."""
    bounds = [*paragraph_starts(text), len(text)] if text else []
    paragraphs = [
        (a, b, FRAGMENT if _is_heading(text[a:b].strip()) else _PARAGRAPH)
        for a, b in pairwise(bounds)
    ]
    pieces = await _count_pieces(text, paragraphs, count)
    pieces = await _refine(text, pieces, max(1, limit // 4), count, _sentences)
    while any(piece.tokens > limit for piece in pieces):
        pieces = await _refine(text, pieces, limit, count, lambda t, p: _divide(t, p, limit))
    return pieces


def _is_heading(paragraph: str) -> bool:
    """Whether a paragraph announces the next, so that no chunk should end with it."""
    return len(paragraph) <= 80 and "\n" not in paragraph and paragraph[-1:].isalnum()


def _sentences(text: str, piece: _Piece) -> list[tuple[int, int, int]]:
    spans = sentence_spans(text, piece.start, piece.end)
    bounds = [piece.start, *(start for start, _ in spans[1:]), piece.end]
    return _label_ranges(bounds, _SENTENCE, piece.ends)


def _pack(pieces: Sequence[_Piece], limit: int) -> list[list[_Piece]]:
    """Group pieces up to ``limit`` tokens; a group ends at the best end of its second half."""
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


def _halve(group: list[_Piece]) -> Iterator[list[_Piece]]:
    if len(group) == 1:
        raise RuntimeError(CONTRADICTION)
    middle = len(group) // 2
    yield group[:middle]
    yield group[middle:]


CONTRADICTION: Final = "the token counter gave the same text different counts"


_WORD: Final = re.compile(r"\S+")


async def window_document(
    document: Document, max_tokens: int, overlap_tokens: int, count: Counter
) -> list[Chunk]:
    """Cut a document into overlapping windows that together hold every character.

    Adjacent windows share whole words of at most ``overlap_tokens``. Source: HGMem §4.2 (200
    tokens, 50 shared). Windows begin and end between words; a word of very many tokens, and a
    script without spaces, is divided. Tokens are counted for words and summed; finished windows are
    counted again, and remade smaller where one is too large. Raises as ``chunk_document``.
    """
    if not 0 <= overlap_tokens < max_tokens:
        raise UsageError(
            f"windows of {max_tokens} tokens cannot share {overlap_tokens}",
            hint="let them share fewer tokens than they have, 0 or more",
        )
    text = document.text
    if not text:
        return []
    words = await _words(text, max_tokens, max(1, (overlap_tokens or max_tokens) // 2), count)
    tokens = [word.tokens for word in words]
    limit, shared = max_tokens, overlap_tokens
    while limit > 0:
        windows = [(words[a].start, words[b - 1].end) for a, b in runs(tokens, limit, shared)]
        texts = [text[start:end] for start, end in windows]
        shares = (text[later[0] : before[1]] for before, later in pairwise(windows))
        common = [each for each in shares if each]  # a tokenizer may count marks of nothing
        counts = await count([*texts, *common])
        over = max(counts[: len(texts)]) - max_tokens
        over_shared = max(counts[len(texts) :], default=0) - overlap_tokens
        if over <= 0 and over_shared <= 0:
            return [
                Chunk(index, document.span(start, end), part, number)
                for index, ((start, end), part, number) in enumerate(
                    zip(windows, texts, counts, strict=False)
                )
            ]
        limit, shared = limit - max(0, over), shared - max(0, over_shared)
    raise RuntimeError(CONTRADICTION)


async def _words(text: str, max_tokens: int, most: int, count: Counter) -> list[_Piece]:
    """Cut a text into words, with the white space before each; those of more than ``most`` tokens
    are divided, down to one character of ``max_tokens``."""

    def divide_word(text: str, piece: _Piece) -> list[tuple[int, int, int]]:
        if piece.end - piece.start > 1:
            return _divide(text, piece, most)
        if piece.tokens > max_tokens:
            return _divide(text, piece, max_tokens)
        return [(piece.start, piece.end, FRAGMENT)]

    ends = [found.end() for found in _WORD.finditer(text)] or [0]
    bounds = [0, *ends[:-1], len(text)]
    words = [text[start:end] for start, end in pairwise(bounds)]
    known = list(dict.fromkeys(words))
    tokens = dict(zip(known, await count(known), strict=True))
    pieces = [
        _Piece(start, end, tokens[word], FRAGMENT)
        for word, (start, end) in zip(words, pairwise(bounds), strict=True)
    ]
    while any(piece.tokens > most and piece.end - piece.start > 1 for piece in pieces):
        pieces = await _refine(text, pieces, most, count, divide_word)
    return await _refine(text, pieces, max_tokens, count, divide_word)


def runs(tokens: Sequence[int], limit: int, shared: int) -> list[tuple[int, int]]:
    """Group items with these token counts into runs [first, stop) of at most ``limit`` tokens.

    A run has one item at least, and begins with the last items of the run before, of ``shared``
    tokens at most.
    """
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
