"""What baselines share: their source, the call that answers, and a view without a graph."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import ceil
from typing import Any, ClassVar, Final, Generic, Literal, TypedDict, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from mgl.errors import UsageError
from mgl.llm.base import Message, Sampling
from mgl.llm.calls import note_made_of, note_shown
from mgl.llm.concurrency import for_each
from mgl.memories.base import LogMemory, Tools, check_question, check_text
from mgl.memories.calls import (
    ANSWER_TOKENS,
    WrittenNote,
    answer_from_passages,
    cite_evidence,
    cite_parts,
)
from mgl.memories.log import Draft, Vocabulary
from mgl.memories.propose import Proposal, ReplyT, propose
from mgl.memories.table import Table
from mgl.memories.turns import answer_from_lines, find_form, say_unknown
from mgl.memories.view import GraphView
from mgl.text import chunk_document, window_document
from mgl.text.groups import format_span, format_turn, turn_groups
from mgl.types import Answer, Chunk, Citation, Conversation, Question, Source, Span, Turn

TALK_TOKENS: Final = 120
"""Of an answer about a conversation, where nothing else is configured; ours."""

AT_ONCE: Final = 64
"""Steps of a build in work together; how many calls the engine takes at once the client knows."""


StateT = TypeVar("StateT")
FillStep = Callable[[Draft[Any, StateT], int], Awaitable[None]]


class BaselineConfig(BaseModel):
    """How the call that answers is sampled. Without ``answer_tokens`` a reply about a conversation
    has ``TALK_TOKENS``, one about a document those of ``mgl.memories.calls``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer_tokens: int | None = Field(None, ge=16)
    answer_temperature: float = Field(0.0, ge=0.0)
    answer_top_p: float = Field(1.0, gt=0.0, le=1.0)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text that the answering call reads, and what a citation of it names; no span where it
    stands on no part of the source. ``turns`` are those that it cites, one by one, where these are
    not all that the span touches."""

    text: str
    id: str = ""
    span: Span | None = None
    turns: tuple[int, ...] = ()


class Judged(TypedDict, total=False):
    """What ``Draft.put`` is told of an edit that a call made."""

    rejected: str | None
    repaired: str | None
    call_key: str | None


def judge(
    said: Proposal[Any] | WrittenNote, failed: Literal["rejected", "repaired"] = "rejected"
) -> Judged:
    """Say which call an edit is of, and what it is where no reply could be used: ``repaired`` if
    something stands in for the reply."""
    judged: Judged = {"call_key": said.call_key}
    judged[failed] = said.problem or None
    return judged


@dataclass(frozen=True, slots=True)
class StepNote:
    """A note that a step wrote on a span; each name of a note is a class of its own."""

    step: int
    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Notes:
    """Notes by their names, each by step."""

    texts: Table[str, Table[int, str]] = field(default_factory=Table)

    def find(self, name: str) -> Table[int, str]:
        """The notes of a name by their steps, in order."""
        return self.texts.get(name, Table())


def keep_notes(kinds: Mapping[str, type[StepNote]]) -> Vocabulary[StepNote, Notes]:
    """Return the vocabulary of a log of notes, by their names."""
    names = {kind: name for name, kind in kinds.items()}

    def apply(notes: Notes, note: StepNote) -> Notes:
        name = names[type(note)]
        return Notes(notes.texts.put(name, notes.find(name).put(note.step, note.text)))

    return Vocabulary(kinds, apply, Notes(), columns=("step", "span"))


def number_items(items: Iterable[str]) -> str:
    """Write items as a prompt lists them, a line each: ``1. Ann moved.``"""
    return "\n".join(f"{place}. {item}" for place, item in enumerate(items, 1))


class Baseline(LogMemory[Any, Any, StateT], Generic[StateT]):
    """A method over one source; what it keeps serves every question.

    Subclasses set ``kind`` and ``Config``, read beforehand in ``_read`` what they read, and answer
    in ``_respond``.
    ``vocabulary`` says what their logs hold; the default is nothing.
    Each row of the log has the span that it is made of, so that a deletion cuts the log where it
    first lost something, and the next build does the rest again (``mgl.memories.deletion``); one
    that holds no words says that it is made of no turns. Turns that were deleted stay so when they
    are given again.
    """

    vocabulary: ClassVar[Vocabulary[Any, Any]] = Vocabulary({}, lambda state, _: state, None)

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: Any = None,
        *,
        identity: str | None = None,
    ) -> None:
        del questions
        self._is_built = False
        self._quoted: dict[str, Sequence[int]] = {}
        super().__init__(tools, source, (), config, identity=identity)
        self._take(source)

    @cached_property
    def _building(self) -> asyncio.Lock:
        """Questions that come together have the source read once."""
        return asyncio.Lock()

    async def build(self) -> None:
        """Register the source with its tokens, and read what is read before any question.

        InputError for a document without text.
        """
        async with self._building:
            await self._build()

    def _take(self, source: Source) -> None:
        """Read a source as the store has it by now, without what was deleted from it.

        ``_masked`` is as it is stored, and ``_source`` has nothing of a turn that is ``_gone``.
        """
        store = self._tools.store
        self._since = store.count_deletions(source.id)
        self._masked, self._source, self._gone = source, source, frozenset[int]()
        if isinstance(source, Conversation) and (fates := store.find_fates(source.id)):
            kept = store.turns(source.id)
            turns = (kept[n] if n in fates else turn for n, turn in enumerate(source.turns))
            masked = replace(source, turns=tuple(turns))
            self._gone = frozenset(n for n, fate in fates.items() if fate == "forgotten")
            self._masked, self._source = masked, masked.without(self._gone)

    def _has_changed(self) -> bool:
        """Whether something was deleted since the source was read, which is read again then."""
        if self._tools.store.count_deletions(self._source.id) == self._since:
            return False
        self._take(self._masked)
        return True

    async def _build(self) -> None:
        store = self._tools.store
        if not self._has_changed() and self._is_built:
            return
        if isinstance(self._masked, Conversation):
            store.put_conversation(self._masked)
        else:
            check_text(self._masked)
            store.put_document(self._masked)
        if store.find_memory(self.id) is None:
            (tokens,) = await self._tools.llm.count_tokens([self._document.text])
            store.put_memory(self._record(chunks=await self._count_steps(), tokens=tokens))
        with self._note_shown([None]), note_made_of(self._quoted):
            await self._read()
        self._is_built = True

    async def answer(self, question: Question) -> Answer:
        """Build what is not built yet, and answer from what was read, or from the source."""
        check_question(question)
        await self.build()
        with self._note_shown([None]), note_made_of(self._quoted):
            return await self._respond(question)

    @abstractmethod
    async def _respond(self, question: Question) -> Answer:
        """Answer a question; calls that do not say which turns they show count as showing all."""

    async def _count_steps(self) -> int:
        """How many steps ``_read`` takes; 0 where it is not known beforehand."""
        return 1

    async def _read(self) -> None:
        """Take into the log what serves every question, from where the log ends; here nothing."""
        if not self._tools.store.count_done(self.id):
            self._write(self._log.draft(0))

    def _mark_failed(self, marks: Mapping[str, str]) -> list[str]:
        """The marks that an answer gets, by the names of the rows that hold no usable reply."""
        failed = {row.op for row in self._log.rows if row.outcome == "rejected"}
        return list(dict.fromkeys(mark for name, mark in marks.items() if name in failed))

    async def _go_on(self, name: str, count: int, fill: FillStep[StateT]) -> None:
        """Append those of ``count`` steps that the log lacks, one after the other; ``fill`` puts
        the edits of a step into its draft."""
        for step in range(self._tools.store.steps(self.id), count):
            self._log.catch_up()
            draft = self._log.draft(step)
            await fill(draft, step)
            self._write(draft)
            self._tools.observer.progress(name, step + 1, count)

    async def _fill(
        self, name: str, first: int, count: int, fill: FillStep[StateT], *, at_once: int = AT_ONCE
    ) -> None:
        """Append those of ``count`` steps from ``first`` on that the log lacks, several at once;
        ``fill`` puts the edits of the n-th into its draft."""
        done = self._tools.store.chunks_done(self.id)
        missing = [place for place in range(count) if first + place not in done]
        finished = count - len(missing)

        async def write(place: int) -> None:
            nonlocal finished
            draft = self._log.draft(first + place)
            await fill(draft, place)
            self._write(draft)
            finished += 1
            self._tools.observer.progress(name, finished, count)

        await for_each(missing, write, at_once=at_once)

    def _write(self, draft: Draft[Any, StateT]) -> None:
        """Append a step; StoreConflict where something was deleted since the source was read."""
        self._log.add(draft, since=self._since)

    def _note_shown(self, spans: Sequence[Span | None]) -> AbstractContextManager[None]:
        """State that the calls within show these parts of the source; None for an unknown one."""
        if not isinstance(self._source, Conversation):
            return nullcontext()
        known = [span for span in spans if span is not None]
        turns = self._turns_at(known) if len(known) == len(spans) else None
        return note_shown(self._source.id, turns, since=self._since)

    async def source_tokens(self) -> int:
        await self.build()
        return self._tools.store.memory(self.id).tokens

    @property
    def conversation(self) -> Conversation:
        """The conversation that is read; UsageError where it is a document."""
        if not isinstance(self._source, Conversation):
            raise UsageError(
                f"{self._source.name} is a document, and {self.kind} was asked for its turns",
                hint="give a file of conversations (.json, .jsonl)",
            )
        return self._source

    @property
    def _all_turns(self) -> Sequence[Turn]:
        """The turns as they are stored: of one that was deleted its speaker and time."""
        return self._masked.turns if isinstance(self._masked, Conversation) else ()

    def _turns(self, numbers: Sequence[int]) -> list[Excerpt]:
        """Turns as they are read and cited, a line each; none that was deleted."""
        talk = self.conversation
        turns = [(number, talk.turns[number]) for number in numbers if number not in self._gone]
        return [
            Excerpt(format_turn(turn), turn.id, talk.span(number) if turn.text else None)
            for number, turn in turns
        ]

    def _sessions(self) -> list[list[int]]:
        """The numbers of the turns that say something, by session; none of an empty session."""
        turns = self.conversation.turns
        by_session = groupby(range(len(turns)), key=lambda number: turns[number].session)
        spoken = ([number for number in numbers if turns[number].text] for _, numbers in by_session)
        return [session for session in spoken if session]

    def _span_of(self, numbers: Sequence[int]) -> Span:
        """The characters from the line of the first of these turns to that of the last."""
        talk = self.conversation
        return Span(talk.id, talk.line_span(numbers[0]).start, talk.line_span(numbers[-1]).end)

    def _turns_at(self, spans: Sequence[Span]) -> tuple[int, ...] | None:
        """The turns that spans touch; None where the source is a document."""
        if not isinstance(self._source, Conversation):
            return None
        touched = {turn for span in spans for turn in self._source.turns_at(span)}
        return tuple(sorted(touched - self._gone))

    async def _chunks(self, max_tokens: int) -> list[Chunk]:
        """Split the source into chunks without overlap; a conversation, into groups of turns."""
        if isinstance(self._masked, Conversation):
            return await self._groups(self._masked, max_tokens, 0)
        return await chunk_document(self._masked, max_tokens, self._tools.llm.count_tokens)

    async def _windows(self, max_tokens: int, overlap_tokens: int) -> list[Chunk]:
        """Split the source into overlapping chunks."""
        if isinstance(self._masked, Conversation):
            return await self._groups(self._masked, max_tokens, overlap_tokens)
        count = self._tools.llm.count_tokens
        return await window_document(self._masked, max_tokens, overlap_tokens, count)

    async def _groups(
        self, masked: Conversation, max_tokens: int, overlap_tokens: int
    ) -> list[Chunk]:
        """Groups of turns, cut as if none had been deleted, so that those keep their places of
        which the log has something. One whose turns all were has an empty text."""
        count = self._tools.llm.count_tokens
        groups = await turn_groups(masked, max_tokens, overlap_tokens, count)
        return [replace(group, text=self._quote(group.span)) for group in groups]

    def _left_of(self, span: Span) -> list[Span]:
        """The parts of a span that were not deleted."""
        talk = self._source
        if not isinstance(talk, Conversation) or self._gone.isdisjoint(talk.turns_at(span)):
            return [span]
        left = []
        for is_gone, run in groupby(talk.turns_at(span), key=self._gone.__contains__):
            if not is_gone:
                whole = self._span_of(list(run))
                start, end = max(span.start, whole.start), min(span.end, whole.end)
                left.append(Span(talk.id, start, end))
        return left

    def _quote(self, span: Span) -> str:
        """What a model reads of a span of the source."""
        if not isinstance(self._source, Conversation):
            return self._source.quote(span)
        text = format_span(self._source, span)
        self._quoted[text] = self._source.turns_at(span)
        return text

    async def _propose(
        self, prompt: str | Sequence[Message], schema: type[ReplyT], tokens: int, stage: str
    ) -> Proposal[ReplyT]:
        """Ask for a reply of at most ``tokens`` under a schema, greedily (see ``propose``)."""
        sampling = Sampling(max_tokens=tokens)
        return await propose(self._tools.llm, prompt, schema, sampling=sampling, stage=stage)

    async def _question_tokens(self, question: Question) -> int:
        (tokens,) = await self._tools.llm.count_tokens([question.text])
        return tokens

    def _sample_answer(self, question: Question) -> Sampling:
        """How the call that answers is sampled."""
        config, tokens = self._config, self._config.answer_tokens
        if isinstance(self._source, Conversation):
            tokens = max(tokens or TALK_TOKENS, find_form(question).tokens)
        elif tokens is None:
            tokens = ANSWER_TOKENS[question.form]
        return Sampling(config.answer_temperature, config.answer_top_p, tokens)

    async def _reserve(self, question: Question, *, step: int = 1) -> int:
        """The tokens that the answering call needs beside its excerpts: for its reply, and for the
        question, rounded up to a multiple of ``step``."""
        budget = self._sample_answer(question).max_tokens
        return budget + ceil(await self._question_tokens(question) / step) * step

    async def _answer(
        self,
        question: Question,
        excerpts: Sequence[Excerpt],
        *,
        read: Sequence[Span] | None = None,
        trace: Sequence[str] = (),
        marks: Sequence[str] = (),
    ) -> Answer:
        """The call that answers, the same for all baselines. Of a conversation it cites excerpts,
        of a document the sentences of excerpts that tell most of the answer.

        ``read`` is where the excerpts stand, the best first where something ranks them; else their
        own spans. Without excerpts a conversation does not mention what was asked, unless the
        answer must be one of the question's options.
        """
        tokens = await self.source_tokens()
        texts = [excerpt.text for excerpt in excerpts]
        if not isinstance(self._source, Conversation):
            sampling = self._sample_answer(question)
            reply = await answer_from_passages(self._tools.llm, texts, question, sampling=sampling)
            ratio = reply.input_tokens / tokens if tokens else None
            parts = [(each.id, each.span) for each in excerpts if each.span is not None]
            parts = parts or [("text", span) for span in read or ()]
            return Answer(
                question.text,
                reply.text,
                None,
                cite_evidence(self._source, reply.text, question, parts),
                tuple(trace),
                tuple(marks),
                ratio,
                retrieved=self._name_passages(excerpts, read),
            )
        if not texts and not question.options:
            unknown = say_unknown(question)
            return Answer(question.text, unknown, "low", (), tuple(trace), tuple(marks))
        with self._note_shown([excerpt.span for excerpt in excerpts]):
            answer = await answer_from_lines(
                self._tools.llm,
                [(excerpt.text, self._cite(excerpt)) for excerpt in excerpts],
                question,
                self._sample_answer(question),
                source_tokens=tokens,
            )
        named = self._name_passages(excerpts, read)
        return replace(answer, trace=tuple(trace), marks=tuple(marks), retrieved=named)

    def _name_passages(
        self, excerpts: Sequence[Excerpt], read: Sequence[Span] | None
    ) -> tuple[str, ...]:
        spans = read or [excerpt.span for excerpt in excerpts if excerpt.span is not None]
        if not isinstance(self._source, Conversation):
            return tuple(dict.fromkeys(span.place for span in spans))
        return self._source.ids_at(left for span in spans for left in self._left_of(span))

    def _cite(self, excerpt: Excerpt) -> Sequence[Citation]:
        spans = [] if excerpt.span is None else self._left_of(excerpt.span)
        if excerpt.turns:
            spans = [self.conversation.line_span(turn) for turn in excerpt.turns]
        return cite_parts(self._document, ((excerpt.id, span) for span in spans))

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The source and the answers: a baseline has no graph."""
        return self._view((), (), steps=0, answers=answers)
