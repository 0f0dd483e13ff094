"""A source split into episodes, the pieces in which a memory takes it in.

Source: Mnemis §2.1, which leaves open how much an episode is. In a conversation it is a turn or a
session; in a document, paragraphs up to a number of tokens, or sentences of a longer paragraph.
Episodes stay as they are when a conversation grows. After a deletion, the turns that are left of
an episode make new ones.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.state import Episode, State
from mgl.prompt import one_line
from mgl.text import sentence_spans
from mgl.text.chunks import Counter, Piece, count_pieces, divide, label_ranges, refine
from mgl.text.sentences import paragraph_starts
from mgl.types import Conversation, Document, Source, Span

_PARAGRAPH, _SENTENCE = 2, 1


async def find_fresh(
    source: Source,
    state: State,
    config: MnemisConfig,
    count: Counter,
    *,
    ended: bool = False,
    forgotten: Collection[int] = (),
) -> list[Episode]:
    """Return the episodes of a source that a state lacks, in order.

    They are made of the turns that are in no episode and not ``forgotten``. A session is an episode
    once another has begun, or with ``ended``, which says that nothing follows. Turns and paragraphs
    without a visible character are left out. ``count`` gives the tokens of texts.
    """
    if isinstance(source, Document):
        whole = await _split_document(source, config.episode_tokens, count)
        return [episode for episode in whole if episode.number not in state.episodes]
    taken = state.lookups.episodes
    open_turns = range(state.lookups.next_turn, len(source.turns))
    fresh = [n for n in open_turns if n not in taken and n not in forgotten]
    episodes: list[Episode] = []
    for numbers in _group_turns(source, config, fresh, taken, ended=ended):
        turns = tuple(number for number in numbers if source.turns[number].text.strip())
        if turns:
            span = Span(source.id, source.span(turns[0]).start, source.span(turns[-1]).end)
            number = state.counts.get("n", 0) + len(episodes)
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
class Sentence:
    """A sentence on one line; ``head`` is what stands before the first one of its ``turn``."""

    span: Span
    quote: str
    speaker: str = ""
    time: datetime | None = None
    head: str = ""
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The sentences of an episode, numbered from 1; none spans two turns."""

    sentences: tuple[Sentence, ...]

    @classmethod
    def of(cls, source: Source, episode: Episode) -> Passage:
        """Split an episode into sentences."""
        if isinstance(source, Document):
            spans = sentence_spans(source.text, episode.span.start, episode.span.end)
            places = (Span(source.id, start, end) for start, end in spans)
            return cls(tuple(Sentence(place, one_line(source.quote(place))) for place in places))
        made: list[Sentence] = []
        for number in episode.turns:
            turn, begin = source.turns[number], source.span(number).start
            about = turn.speaker, turn.time, _head(source, number), number
            for start, end in sentence_spans(turn.text):
                place = Span(source.id, begin + start, begin + end)
                made.append(Sentence(place, one_line(turn.text[start:end]), *about))
        return cls(tuple(made))

    def __getitem__(self, number: int) -> Sentence:
        return self.sentences[number - 1]

    @property
    def texts(self) -> tuple[str, ...]:
        """The speakers, then the sentences."""
        speakers = dict.fromkeys(each.speaker for each in self.sentences)
        return (*speakers, *(each.quote for each in self.sentences))

    def render_numbered(self, first: int = 1, last: int | None = None) -> str:
        """Return the sentences from ``first`` to ``last``, with ``[n]`` before each."""
        return self._write(first, last or len(self.sentences), "[{}] {}")

    def render_plain(self, first: int, last: int) -> str:
        """Return the same without numbers."""
        return self._write(first, last, "{1}")

    def _write(self, first: int, last: int, form: str) -> str:
        parts: list[str] = []
        for number in range(first, last + 1):
            sentence = self[number]
            is_inside = sentence.turn is not None and number > first
            begins = not is_inside or sentence.turn != self[number - 1].turn
            before = ("\n" if parts else "") + sentence.head if begins else " "
            parts.append(before + form.format(number, sentence.quote))
        return "".join(parts)

    def span(self, first: int, last: int | None = None) -> Span:
        """Return the characters of a sentence, or from one to another."""
        return replace(self[first].span, end=self[last or first].span.end)


def _head(source: Conversation, number: int) -> str:
    turn = source.turns[number]
    time = "" if turn.time is None else f"({turn.time:%A, %d %B %Y, %H:%M}) "
    return f"{time}{' '.join(turn.speaker.split())}: " if turn.speaker else time


def _group_turns(
    source: Conversation,
    config: MnemisConfig,
    fresh: Sequence[int],
    taken: Container[int],
    *,
    ended: bool,
) -> list[list[int]]:
    """Return the fresh turns that belong together; no taken turn lies between them."""
    if config.episode == "turn":
        return [[number] for number in fresh]
    sessions: list[list[int]] = []
    for number in fresh:
        last = sessions[-1][-1] if sessions else number
        is_same = source.turns[number].session == source.turns[last].session
        if sessions and is_same and not any(n in taken for n in range(last + 1, number)):
            sessions[-1].append(number)
        else:
            sessions.append([number])
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
