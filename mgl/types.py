"""The shared nouns: documents, spans, chunks, questions, answers, usage.

All are frozen. Offsets are in characters of a document's decoded text, end exclusive. No text of a
document, turn or question holds a lone surrogate, which no file can be written with: U+FFFD stands
in its place.

    >>> document = Document.from_text("note.txt", "Ann met Bo. They married.")
    >>> document.quote(Span(document.id, 0, 11))
    'Ann met Bo.'
"""

from __future__ import annotations

import hashlib
import json
import operator
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final, Literal
from unicodedata import normalize

CONVERSATION: Final = "text/x-conversation"
"""The media type of a transcript."""

Confidence = Literal["high", "medium", "low"]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

AnswerForm = Literal["short", "long"]
"""A few words, or all that there is to say, as in short-form and long-form question answering."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A character range of one document: ``start`` inclusive, ``end`` exclusive, never empty."""

    document_id: str
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.end:
            raise ValueError(f"a span needs 0 <= start < end, got [{self.start}, {self.end})")

    @property
    def place(self) -> str:
        """The range as the id of a passage, whatever it was cut by: ``412-890``."""
        return f"{self.start}-{self.end}"

    @classmethod
    def at(cls, document_id: str, place: str) -> Span:
        """The span of a document at a ``place``; ValueError if ``place`` is not a range."""
        start, _, end = place.partition("-")
        return cls(document_id, int(start), int(end))


@dataclass(frozen=True, slots=True)
class Section:
    """A page, chapter or session and the characters that belong to it.

    ``day`` is the day on which a session began, as a model reads it, "" where it is not known.
    """

    kind: Literal["page", "chapter", "session"]
    label: str
    start: int
    end: int
    day: str = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A source text as decoded, with where its pages, chapters or sessions lie.

    ``id`` is derived from the text alone, so the same text read twice is the same document.
    ``notes`` says what the reader had to decide (an encoding that was guessed, for instance).
    """

    id: str
    name: str
    text: str
    sections: tuple[Section, ...] = ()
    media_type: str = "text/plain"
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _replace_surrogates(self, "name", "text")

    @classmethod
    def from_text(
        cls,
        name: str,
        text: str,
        *,
        sections: tuple[Section, ...] = (),
        media_type: str = "text/plain",
        notes: tuple[str, ...] = (),
    ) -> Document:
        text = replace_surrogates(text)
        return cls(_digest(text), name, text, sections, media_type, notes)

    def span(self, start: int, end: int) -> Span:
        """The span [start, end) of this document; ValueError if it leaves the text."""
        if end > len(self.text):
            raise ValueError(f"span end {end} is beyond the text's {len(self.text)} characters")
        return Span(self.id, start, end)

    def quote(self, span: Span) -> str:
        """The characters that a span of this document stands for."""
        if span.document_id != self.id or span.end > len(self.text):
            raise ValueError(f"{span} is not a span of document {self.id}")
        return self.text[span.start : span.end]

    def cite(self, node_id: str, span: Span) -> Citation:
        """The citation of a node that stands on a span."""
        return Citation(node_id, self.name, span, self.quote(span), self.section_at(span.start))

    def section_at(self, position: int) -> Section | None:
        """The page or chapter that holds a character position, if the reader found any."""
        index = bisect_right(self.sections, position, key=lambda section: section.start) - 1
        if index >= 0 and position < self.sections[index].end:
            return self.sections[index]
        return None


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of a conversation.

    ``id`` is unique in its conversation. ``speaker`` is "" where it is not known. ``session`` is
    the label of the session it belongs to. The caption of a picture that was sent belongs to
    ``text``, as ``[image: …]``.
    """

    id: str
    speaker: str
    text: str
    time: datetime | None = None
    session: str | None = None

    def __post_init__(self) -> None:
        if not f"{self.id}{self.speaker}{self.text}{self.session}".isascii():  # thousands are read
            _replace_surrogates(self, "id", "speaker", "text", "session")

    @property
    def line(self) -> str:
        """The turn as a transcript has it: ``Ann: Hello.``"""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True)
class Conversation:
    """Turns in the order in which they came; a turn's number is its place among them, from 0.

    ``id`` stands for the conversation, not for its text: one that grows keeps it.

        >>> talk = Conversation.from_turns("talk", [Turn("1", "Ann", "Hi."), Turn("2", "Bo", "Hm")])
        >>> talk.transcript.quote(talk.span(1))
        'Hm'
    """

    id: str
    name: str
    turns: Sequence[Turn] = ()
    notes: tuple[str, ...] = ()
    ends: Sequence[int] | None = field(default=None, repr=False, compare=False)
    """Where each turn's line ends in the transcript, by one who keeps count; else it is counted."""
    firsts: Sequence[int] | None = field(default=None, repr=False, compare=False)
    """The number of the turn that begins each turn's session, likewise."""
    given_id: str = field(default="", repr=False, compare=False)
    """Its id in the file that it was read from, if it has one there."""
    is_named: bool = field(default=False, repr=False, compare=False)
    """Whether it is new and known by its name alone, which no other such conversation has."""

    def __post_init__(self) -> None:
        _replace_surrogates(self, "name")

    @classmethod
    def from_turns(
        cls, name: str, turns: Sequence[Turn], notes: Sequence[str] = ()
    ) -> Conversation:
        """A conversation that is known by its turns: the same ones give the same id."""
        said = json.dumps([asdict(turn) for turn in turns], default=str)
        return cls(_digest(f"turns {said}"), name, tuple(turns), tuple(notes))

    @classmethod
    def from_name(cls, name: str, renamed: int = 0) -> Conversation:
        """The conversation that is known by its name alone, before its first turn; accents are the
        same in either of their forms.

        ``renamed`` counts the conversations that were begun under this name and renamed since.
        """
        name = normalize("NFC", replace_surrogates(name))
        said = f"name {name}" if not renamed else f"name {renamed}\n{name}"
        return cls(_digest(said), name, is_named=True)

    @cached_property
    def transcript(self) -> Document:
        """All turns as one text, a line each.

        Its sections are the sessions, or the days of turns that belong to none.
        """
        sections: list[Section] = []
        position = 0
        for turn, end in zip(self.turns, self._ends, strict=False):
            label = turn.session
            if label is None and turn.time is not None:
                label = f"{turn.time:%Y-%m-%d}"
            if sections and sections[-1].label == label:
                sections[-1] = replace(sections[-1], end=end)
            elif label is not None:
                day = "" if turn.time is None else f"{turn.time:%A, %d %B %Y}"
                sections.append(Section("session", label, position, end, day))
            position = end
        starts = (0, *self._ends)
        lengths = (end - start - 1 for start, end in pairwise(starts))
        lines = (
            f"{turn.line.ljust(length)}\n"
            for turn, length in zip(self.turns, lengths, strict=False)
        )
        text = "".join(lines)
        return Document(self.id, self.name, text, tuple(sections), CONVERSATION, self.notes)

    def without(self, numbers: Collection[int]) -> Conversation:
        """The conversation in which some turns say nothing; all others stay where they are, and
        blanks stand in the transcript."""
        turns = tuple(
            Turn(turn.id, "", "", turn.time, turn.session) if number in numbers else turn
            for number, turn in enumerate(self.turns)
        )
        return replace(self, turns=turns, ends=self._ends)

    def span(self, number: int) -> Span:
        """The characters of the transcript that a turn said, without its speaker."""
        end = self._ends[number] - 1
        return Span(self.id, end - len(self.turns[number].text), end)

    def line_start(self, number: int) -> int:
        """Where a turn's line begins in the transcript: an empty one, too."""
        return self._ends[number] - 1 - len(self.turns[number].line)

    def line_span(self, number: int) -> Span:
        """The characters of the transcript that are a turn's line, its speaker included.

        ValueError for an empty line.
        """
        return Span(self.id, self.line_start(number), self._ends[number] - 1)

    def turns_at(self, span: Span) -> range:
        """The numbers of the turns that a span of the transcript touches."""
        first = bisect_right(self._ends, span.start)
        return range(first, bisect_right(self._ends, span.end - 1) + 1)

    def ids_at(self, spans: Iterable[Span]) -> tuple[str, ...]:
        """The ids of the turns that spans of the transcript touch, in the order of the spans."""
        touched = (self.turns[number].id for span in spans for number in self.turns_at(span))
        return tuple(dict.fromkeys(touched))

    def session_at(self, number: int) -> Section | None:
        """The session that a turn belongs to: the turns around it of the same label."""
        label = self.turns[number].session
        if label is None:
            return None
        first = self._firsts[number]
        last = bisect_right(self._firsts, first) - 1
        return Section("session", label, self.line_start(first), self._ends[last])

    @cached_property
    def _firsts(self) -> Sequence[int]:
        if self.firsts is not None:
            return self.firsts
        firsts: list[int] = []
        for number, turn in enumerate(self.turns):
            is_same = number > 0 and self.turns[number - 1].session == turn.session
            firsts.append(firsts[-1] if is_same else number)
        return firsts

    @cached_property
    def _ends(self) -> Sequence[int]:
        if self.ends is not None:
            return self.ends
        return tuple(accumulate(len(turn.line) + 1 for turn in self.turns))


Source = Document | Conversation
"""What a memory may be built from."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One piece of a document in reading order; ``tokens`` counted by the reading model."""

    index: int
    span: Span
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is put to a memory; by whom and when, where a conversation needs it.

    ``form`` is that of the answer that is wanted. HGMem and the baselines give either about a
    document; every other answer is short. ``options`` are the only answers that there are, as they
    are to be written: every memory's reply is held to them. ``asked`` is whom the question calls
    "you". ``unknown`` is what an answer says where nothing tells it, in the words of a benchmark;
    empty: in ours.
    """

    text: str
    asked_at: datetime | None = None
    asker: str | None = None
    form: AnswerForm = "short"
    options: tuple[str, ...] = ()
    asked: str | None = None
    unknown: str = ""

    def __post_init__(self) -> None:
        _replace_surrogates(self, "text", "asker", "asked")


@dataclass(frozen=True, slots=True)
class Citation:
    """A node that an answer cites, and the passage the node stands on.

    ``section`` is its page, chapter or session; ``speaker`` and ``time`` are those of a turn.
    """

    node_id: str
    document: str
    span: Span
    quote: str
    section: Section | None = None
    speaker: str = ""
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class StageUsage:
    """What one stage of a run cost. ``calls`` were issued; ``replayed`` came from the call log.

    Token counts cover both, so that a replayed run reports what the run is worth;
    ``cached_tokens`` are the input tokens that an engine's prefix cache or a replay saved.
    ``seconds`` sums the engine's own latency of issued calls (calls in flight together overlap).
    ``violated`` counts replies that broke a rule which no grammar can force, ``loosened`` the
    constraints that were given up for weaker ones because the engine could not compile them.
    ``failed`` counts the issued calls that gave no completion (time-out, refusal, lost server).
    """

    calls: int = 0
    replayed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    violated: int = 0
    loosened: int = 0
    failed: int = 0

    @property
    def completions(self) -> int:
        """How many completions there were, issued or replayed alike."""
        return self.calls - self.failed + self.replayed

    def __add__(self, other: StageUsage) -> StageUsage:
        return self._each(operator.add, other)

    def __sub__(self, other: StageUsage) -> StageUsage:
        return self._each(operator.sub, other)

    def _each(self, join: Callable[[Any, Any], Any], other: StageUsage) -> StageUsage:
        names = (own.name for own in fields(self))
        return StageUsage(*(join(getattr(self, name), getattr(other, name)) for name in names))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost, by stage. ``seconds`` is wall time, which only its caller knows."""

    by_stage: Mapping[str, StageUsage] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def total(self) -> StageUsage:
        return sum(self.by_stage.values(), StageUsage())


@dataclass(frozen=True, slots=True)
class Answer:
    """A memory's answer, the passages it rests on, and the steps that led to it.

    ``confidence`` is what the model says of its answer, None where it is not asked.
    ``trace`` is one line per step taken; ``marks`` names departures from the ordinary course
    (for instance ``graph_exceeds_context``).
    ``compaction_ratio`` is first-call input tokens / tokens of the source (MindGraph §4.2).
    ``paths`` are ways down a hierarchy to what was read: ids of nodes, from the top to the last.
    ``retrieved`` are the turns (by their ids) or the passages of a document (``Span.place``) that
    it was made from: the best first, or in the order read where nothing ranks them.
    ``guesses`` are the parts of ``text`` that nothing in the source was found to bear out.
    """

    question: str
    text: str
    confidence: Confidence | None
    citations: tuple[Citation, ...]
    trace: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    compaction_ratio: float | None = None
    paths: tuple[tuple[str, ...], ...] = ()
    retrieved: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate by U+FFFD; the text keeps its length."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def _replace_surrogates(item: Any, *names: str) -> None:
    """Replace them in some fields of a frozen dataclass that is being made."""
    for name in names:
        text = getattr(item, name)
        if text is not None and (mended := replace_surrogates(text)) is not text:
            object.__setattr__(item, name, mended)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
