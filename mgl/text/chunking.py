"""A document in chunks of at most so many tokens, counted by the model that will read them.

    chunks = await chunk_document(document, 8192, engine.count_tokens)
    assert "".join(chunk.text for chunk in chunks) == document.text

A chunk ends at a paragraph if one ends in its second half (rather not at a heading), else at a
sentence, else at white space, else anywhere. Tokens are counted for pieces (paragraphs; sentences
of long paragraphs; fragments of overlong sentences) and summed; the finished chunks are counted
again, and one that is larger than its pieces is divided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from mgl.errors import UsageError
from mgl.text.pieces import FRAGMENT, Counter, Piece, counted, fragments, ranges, refined
from mgl.text.sentences import paragraph_starts, sentence_spans
from mgl.types import Chunk, Document

__all__ = ["Counter", "chunk_document"]

_PARAGRAPH, _SENTENCE = 2, 1


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


async def _pieces(text: str, limit: int, count: Counter) -> list[Piece]:
    """The text in pieces of at most ``limit`` tokens, as coarse as serves a chunk's end."""
    bounds = [*paragraph_starts(text), len(text)] if text else []
    paragraphs = [
        (a, b, FRAGMENT if _is_heading(text[a:b].strip()) else _PARAGRAPH)
        for a, b in pairwise(bounds)
    ]
    pieces = await counted(text, paragraphs, count)
    pieces = await refined(text, pieces, max(1, limit // 4), count, _sentences)
    while any(piece.tokens > limit for piece in pieces):
        pieces = await refined(text, pieces, limit, count, lambda t, p: fragments(t, p, limit))
    return pieces


def _is_heading(paragraph: str) -> bool:
    """Whether a paragraph announces the next one, so that no chunk should end with it."""
    return len(paragraph) <= 80 and "\n" not in paragraph and paragraph[-1:].isalnum()


def _sentences(text: str, piece: Piece) -> list[tuple[int, int, int]]:
    spans = sentence_spans(text, piece.start, piece.end)
    bounds = [piece.start, *(start for start, _ in spans[1:]), piece.end]
    return ranges(bounds, _SENTENCE, piece.ends)


def _packed(pieces: Sequence[Piece], limit: int) -> list[list[Piece]]:
    """Pieces in groups of at most ``limit`` tokens, each ending as well as its second half lets."""
    groups: list[list[Piece]] = []
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


def _halves(group: list[Piece], limit: int) -> Iterator[list[Piece]]:
    if len(group) == 1:
        raise UsageError(
            f"a text counted as {group[0].tokens} tokens is counted again as more than {limit}",
            hint="the token counter must give the same count for the same text",
        )
    middle = len(group) // 2
    yield group[:middle]
    yield group[middle:]
