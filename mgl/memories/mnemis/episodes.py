"""A source split into episodes, the pieces in which a memory takes it in.

Source: Mnemis §2.1, which leaves open how much an episode is. In a conversation it is a turn or a
session; in a document, paragraphs up to a number of tokens, or sentences of a longer paragraph.
Episodes stay as they are when a conversation grows. After a deletion, the turns that are left of
an episode make new ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.state import Episode
from mgl.text import sentence_spans
from mgl.text.chunks import Counter, Piece, count_pieces, divide, label_ranges, refine
from mgl.text.sentences import paragraph_starts
from mgl.types import Conversation, Document, Source, Span

__all__ = ["Passage", "clip", "render_episode", "split_source"]

_PARAGRAPH, _SENTENCE = 2, 1


async def split_source(
    source: Source,
    config: MnemisConfig,
    count: Counter,
    *,
    known: Sequence[Episode] = (),
    ended: bool = False,
    forgotten: Collection[int] = (),
    first: int = 0,
) -> list[Episode]:
    """Return the episodes of a source in order: those ``known`` of a conversation, then new ones.

    New ones are made of the turns that are in no known one and not ``forgotten``; their numbers
    begin at ``first`` or after the last known. A session is an episode once another has begun, or
    with ``ended``, which says that nothing follows. Turns and paragraphs without a visible
    character are left out. ``count`` gives the tokens of texts.
    """
    if isinstance(source, Document):
        return await _split_document(source, config.episode_tokens, count)
    episodes = list(known)
    taken = sorted(turn for episode in known for turn in episode.turns)
    fresh = sorted(set(range(len(source.turns))).difference(taken, forgotten))
    for numbers in _group_turns(source, config, fresh, taken, ended=ended):
        turns = tuple(number for number in numbers if source.turns[number].text.strip())
        if turns:
            span = Span(source.id, source.span(turns[0]).start, source.span(turns[-1]).end)
            number = max(first, episodes[-1].number + 1 if episodes else 0)
            episodes.append(Episode(number, span, turns, _last_time(source, turns)))
    return episodes


def render_episode(source: Source, episode: Episode) -> str:
    """Return what a model reads: a line for each turn, with speaker and time, or the text."""
    if isinstance(source, Document):
        return source.quote(episode.span).strip()
    return "\n".join(
        f"{_head(source, number)}{' '.join(source.turns[number].text.split())}"
        for number in episode.turns
    )


def clip(text: str, most: int) -> str:
    """Return a text that a model wrote on one line, of at most ``most`` characters."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


@dataclass(frozen=True, slots=True)
class Passage:
    """The sentences of an episode, numbered from 1.

    ``sentences`` are ranges of the text; none spans two turns. For each sentence there is its
    speaker ("" if unknown), its time, and the head of its line (``heads``; ``lines`` numbers the
    lines).
    """

    document: Document
    sentences: tuple[tuple[int, int], ...]
    speakers: tuple[str, ...]
    times: tuple[datetime | None, ...]
    heads: tuple[str, ...]
    lines: tuple[int, ...]

    @classmethod
    def of(cls, source: Source, episode: Episode) -> Passage:
        """Split an episode into sentences."""
        if isinstance(source, Document):
            spans = sentence_spans(source.text, episode.span.start, episode.span.end)
            none, never = ("",) * len(spans), (None,) * len(spans)
            return cls(source, tuple(spans), none, never, none, tuple(range(len(spans))))
        spoken = [
            (sentence, number)
            for number in episode.turns
            for sentence in sentence_spans(
                source.transcript.text, source.span(number).start, source.span(number).end
            )
        ]
        return cls(
            source.transcript,
            tuple(sentence for sentence, _ in spoken),
            tuple(source.turns[number].speaker for _, number in spoken),
            tuple(source.turns[number].time for _, number in spoken),
            tuple(_head(source, number) for _, number in spoken),
            tuple(number for _, number in spoken),
        )

    def numbered(self, first: int = 1, last: int | None = None) -> str:
        """Return the sentences from ``first`` to ``last``, with ``[n]`` before each."""
        return self._write(first, last or len(self.sentences), "[{}] {}")

    def plain(self, first: int, last: int) -> str:
        """Return the same without numbers."""
        return self._write(first, last, "{1}")

    @property
    def texts(self) -> tuple[str, ...]:
        """The speakers, then the sentences."""
        quotes = (self.quote(number) for number in range(1, len(self.sentences) + 1))
        return (*dict.fromkeys(self.speakers), *quotes)

    def _write(self, first: int, last: int, form: str) -> str:
        parts: list[str] = []
        for number in range(first, last + 1):
            at = number - 1
            begins = number == first or self.lines[at] != self.lines[at - 1]
            before = ("\n" if parts else "") + self.heads[at] if begins else " "
            parts.append(before + form.format(number, self.quote(number)))
        return "".join(parts)

    def span(self, first: int, last: int | None = None) -> Span:
        """Return the characters of a sentence, or from one to another."""
        end = self.sentences[(last or first) - 1][1]
        return self.document.span(self.sentences[first - 1][0], end)

    def quote(self, number: int) -> str:
        """Return a sentence on one line."""
        return " ".join(self.document.quote(self.span(number)).split())


def _head(source: Conversation, number: int) -> str:
    turn = source.turns[number]
    time = "" if turn.time is None else f"({turn.time:%A, %d %B %Y, %H:%M}) "
    return f"{time}{' '.join(turn.speaker.split())}: " if turn.speaker else time


def _group_turns(
    source: Conversation,
    config: MnemisConfig,
    fresh: Sequence[int],
    taken: Sequence[int],
    *,
    ended: bool,
) -> list[tuple[int, ...]]:
    """Return the fresh turns that belong together; no taken turn lies between them."""
    if config.episode == "turn":
        return [(number,) for number in fresh]
    sessions = [
        tuple(each)
        for _, each in groupby(fresh, lambda n: (source.turns[n].session, bisect_left(taken, n)))
    ]
    return sessions if ended else sessions[:-1]


def _last_time(source: Conversation, turns: Sequence[int]) -> datetime | None:
    times = (source.turns[number].time for number in reversed(turns))
    return next((time for time in times if time is not None), None)


async def _split_document(document: Document, limit: int, count: Counter) -> list[Episode]:
    text = document.text
    if not text.strip():
        return []
    bounds = [*paragraph_starts(text), len(text)]
    pieces = await count_pieces(text, label_ranges(bounds, _PARAGRAPH, _PARAGRAPH), count)
    pieces = await refine(text, pieces, limit, count, _split_sentences)
    while any(piece.tokens > limit for piece in pieces):
        pieces = await refine(text, pieces, limit, count, lambda t, p: divide(t, p, limit))
    groups = await _recount(text, _pack(pieces, limit), limit, count)
    spans = [document.span(group[0].start, group[-1].end) for group in groups]
    visible = [span for span in spans if document.quote(span).strip()]
    return [Episode(number, span) for number, span in enumerate(visible)]


def _split_sentences(text: str, piece: Piece) -> list[tuple[int, int, int]]:
    spans = sentence_spans(text, piece.start, piece.end)
    bounds = [piece.start, *(start for start, _ in spans[1:]), piece.end]
    return label_ranges(bounds, _SENTENCE, piece.ends)


def _pack(pieces: Sequence[Piece], limit: int) -> list[list[Piece]]:
    groups: list[list[Piece]] = []
    tokens = 0
    for piece in pieces:
        tokens += piece.tokens
        if groups and tokens <= limit:
            groups[-1].append(piece)
        else:
            groups.append([piece])
            tokens = piece.tokens
    return groups


async def _recount(
    text: str, groups: list[list[Piece]], limit: int, count: Counter
) -> list[list[Piece]]:
    """Halve the groups that have more tokens together than their pieces have alone."""
    while True:
        counts = await count([text[group[0].start : group[-1].end] for group in groups])
        parts: list[list[Piece]] = []
        for group, tokens in zip(groups, counts, strict=True):
            middle = len(group) // 2 if tokens > limit else 0
            parts += [group[:middle], group[middle:]] if middle else [group]
        if len(parts) == len(groups):
            return groups
        groups = parts
