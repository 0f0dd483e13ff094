"""Turns of a conversation in groups: what chunks are to a document.

    groups = await turn_groups(conversation, 200, 50, engine.count_tokens)
    groups[0].text                       # (Monday, 08 May 2023) Ann: Hello.

A group is a span of the transcript, of whole turns where they fit. Its text, and its tokens, are
those that a model reads: a line a turn, with the day on which it was said.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.errors import UsageError
from mgl.prompt import one_line
from mgl.text.chunks import CONTRADICTION, Counter, chunk_document, runs
from mgl.text.sentences import numbered_sentences
from mgl.types import Chunk, Conversation, Document, Span, Turn


def format_turn(turn: Turn) -> str:
    """Write a turn on one line, with the day on which it was said."""
    return _format_line(turn, turn.line)


def format_span(conversation: Conversation, span: Span) -> str:
    """Write a span of the transcript as a model reads it: a line for each turn it touches."""
    lines = []
    for number in conversation.turns_at(span):
        turn = conversation.turns[number]
        if not turn.line:
            continue
        begins = conversation.line_span(number).start
        if part := turn.line[max(0, span.start - begins) : span.end - begins].strip():
            lines.append(_format_line(turn, part))
    return "\n".join(lines)


def mark_days(document: Document, start: int, end: int) -> list[tuple[int, str]]:
    """The days of the sessions in a range of a transcript, and where each is to stand."""
    return [
        (max(start, section.start), f"({section.day})\n")
        for section in document.sections
        if section.day and section.start < end and start < section.end
    ]


def show_span(document: Document, span: Span) -> str:
    """Write a span as a model reads it: of a transcript with each session's day before it."""
    days = mark_days(document, span.start, span.end)
    return numbered_sentences(document.text, (), span.start, span.end, marks=days)


async def turn_groups(
    conversation: Conversation, max_tokens: int, overlap_tokens: int, count: Counter
) -> list[Chunk]:
    """Group turns, in order, up to ``max_tokens``; turns without words are left out.

    A group begins with the last turns of the one before, of ``overlap_tokens`` at most. A turn of
    too many tokens is divided. Raises UsageError where a group has no room for a word.
    """
    if not 0 <= overlap_tokens < max_tokens:
        raise UsageError(
            f"groups of {max_tokens} tokens cannot share {overlap_tokens}",
            hint="let them share fewer tokens than they have, 0 or more",
        )
    pieces = await _pieces(conversation, max_tokens, count)
    if not pieces:
        return []
    tokens = await count([f"{format_span(conversation, piece)}\n" for piece in pieces])
    limit = max_tokens
    while limit > 0:
        ranges = runs(tokens, limit, overlap_tokens)
        spans = [Span(conversation.id, pieces[a].start, pieces[b - 1].end) for a, b in ranges]
        groups = await _chunks(conversation, spans, count)
        over = max(group.tokens for group in groups) - max_tokens
        if over <= 0:
            return groups
        limit -= over
    raise RuntimeError(CONTRADICTION)


async def _chunks(conversation: Conversation, spans: Sequence[Span], count: Counter) -> list[Chunk]:
    texts = [format_span(conversation, span) for span in spans]
    counts = await count(texts) if texts else []
    return [
        Chunk(index, span, text, tokens)
        for index, (span, text, tokens) in enumerate(zip(spans, texts, counts, strict=True))
    ]


async def _pieces(conversation: Conversation, max_tokens: int, count: Counter) -> list[Span]:
    """List the turns that say anything; a turn that is too long by its parts."""
    numbers = [number for number, turn in enumerate(conversation.turns) if turn.line.strip()]
    lines = [f"{format_turn(conversation.turns[number])}\n" for number in numbers]
    pieces: list[Span] = []
    for number, tokens in zip(numbers, await count(lines) if lines else [], strict=True):
        whole = conversation.line_span(number)
        pieces += (
            [whole]
            if tokens <= max_tokens
            else await _parts(conversation, whole, max_tokens, count)
        )
    return pieces


async def _parts(
    conversation: Conversation, whole: Span, max_tokens: int, count: Counter
) -> list[Span]:
    line = Document.from_text("", conversation.transcript.quote(whole))
    room = max_tokens
    while True:
        parts = [
            Span(whole.document_id, whole.start + part.span.start, whole.start + part.span.end)
            for part in await chunk_document(line, room, count)
            if part.text.strip()
        ]
        over = (
            max(await count([f"{format_span(conversation, part)}\n" for part in parts]))
            - max_tokens
        )
        if over <= 0:
            return parts
        room -= over


def _format_line(turn: Turn, line: str) -> str:
    day = "" if turn.time is None else f"({turn.time:%A, %d %B %Y}) "
    return f"{day}{one_line(line)}"
