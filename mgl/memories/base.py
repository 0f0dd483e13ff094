"""What a memory is, the tools it is given, and what every memory does the same.

A memory reads a source into a log of edits (``build``) and answers from what the log holds
(``answer``). Everything it keeps is in the store: building again continues where the log ends.

``SourceMemory`` is the base of all: identity, record, source. ``LogMemory`` adds a log of edits
and the state that it makes, ``TalkMemory`` a conversation that grows turn by turn: appending,
replying, forgetting.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from mgl.errors import InputError, UsageError
from mgl.llm.base import LLM, Sampling
from mgl.llm.calls import content_hash
from mgl.llm.replies import REPAIR
from mgl.memories.calls import Shown, answer_from_turns, reply_to_turn
from mgl.memories.deletion import Forgotten, delete, find_turn_numbers, is_before, plan_deletion
from mgl.memories.log import FORGET, MASK, Log, Vocabulary
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.observer import Observer
from mgl.prompt import Prompt, hashes
from mgl.retrieval.base import Embedder, Reranker
from mgl.store import MemoryRecord, Store
from mgl.store.deletion import Gone, Redaction
from mgl.types import Answer, Conversation, Document, Question, Source, Turn

__all__ = [
    "ConversationMemory",
    "LogMemory",
    "Memory",
    "MemoryKind",
    "PresetConfig",
    "Recall",
    "SourceMemory",
    "TalkMemory",
    "Tools",
    "check_ids",
    "check_question",
    "check_text",
    "memory_id",
]

ToolT = TypeVar("ToolT")
ConfigT = TypeVar("ConfigT", bound=BaseModel)
EditT = TypeVar("EditT")
StateT = TypeVar("StateT")

RECENT: Final = 6
"""Turns that a reply is shown as they are."""


def memory_id(
    kind: str,
    config: Mapping[str, Any],
    model_id: str,
    prompts: Collection[Prompt],
    **rest: Any,
) -> str:
    """The id of a memory: a hash of all that decides its log; ``rest`` says of what it is.

    ``prompts`` are those that ask for what stands in the log, and none that only read it; where
    there are any, the one that asks for a reply again (``mgl.llm.replies``) is one of them.
    """
    asked = hashes((*prompts, REPAIR)) if prompts else {}
    decided = {"kind": kind, "config": config, "model": model_id, "prompts": asked, **rest}
    return content_hash(decided)[:12]


def check_ids(conversation: Conversation) -> None:
    """InputError where a turn has the id of another."""
    ids: set[str] = set()
    for turn in conversation.turns:
        if turn.id in ids:
            raise InputError(
                f"two turns have the id {turn.id!r}", hint="give each turn an id of its own"
            )
        ids.add(turn.id)


def check_text(document: Document) -> None:
    """InputError for a document without text."""
    if not document.text.strip():
        raise InputError(
            f"{document.name} holds no text", hint="give a document that says something"
        )


def check_question(question: Question) -> None:
    """InputError for a question without text."""
    if not question.text.strip():
        raise InputError("the question is empty", hint="say what you want to know")


class PresetConfig(BaseModel):
    """A configuration with a preset for models and machines that cannot follow the paper's.

    ``SMALL`` are the options that ``small`` sets; what is given besides goes before them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    SMALL: ClassVar[Mapping[str, Any]] = {}
    preset: Literal["paper", "small"] = "paper"

    @model_validator(mode="before")
    @classmethod
    def _of_preset(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("preset") == "small":
            return {**cls.SMALL, **given}
        return given


@dataclass(frozen=True, slots=True)
class Tools:
    """All that a memory may use. ``clock`` gives seconds since the epoch."""

    llm: LLM
    store: Store
    observer: Observer
    clock: Callable[[], float]
    embedder: Embedder | None = None
    reranker: Reranker | None = None

    @property
    def required_embedder(self) -> Embedder:
        """The embedder; UsageError where there is none."""
        return _required(self.embedder, "an embedding model")

    @property
    def required_reranker(self) -> Reranker:
        """The reranker; UsageError where there is none."""
        return _required(self.reranker, "a reranker")


def _required(tool: ToolT | None, what: str) -> ToolT:
    if tool is None:
        raise UsageError(
            f"this memory needs {what}",
            hint="install the extra [retrieval], or name one of your own",
        )
    return tool


class Memory(Protocol):
    """One memory over one source and the questions it is read for.

    ``id`` is stable: same source, questions, configuration and model give the same id. A memory
    is made by its ``MemoryKind``.
    """

    @property
    def id(self) -> str: ...

    async def build(self) -> None:
        """Read the source into the log; resumable, and a finished build is left as it is."""
        ...

    async def answer(self, question: Question) -> Answer: ...

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """What exporters draw, with the answers to show beside it."""
        ...


class ConversationMemory(Memory, Protocol):
    """A memory that is told a conversation turn after turn."""

    @property
    def conversation(self) -> Conversation:
        """The conversation as the store has it now."""
        ...

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; in the log before it returns."""
        ...

    async def reply(self, turn: Turn, name: str) -> Answer:
        """Take in what somebody says, reply as ``name``, and take that in, too."""
        ...

    async def end_session(self) -> None: ...

    async def flush(self) -> None: ...


class MemoryKind(Protocol):
    """A class of memories; ``Config`` is its configuration, whose fields are its options.

    ``reads`` is the kind of source that it is made for, ``either`` where it takes both (files that
    end in .json or .jsonl are conversations then); ``retrieves`` says whether it needs an
    embedder and a reranker, ``per_question`` whether each question has a memory of its own, which
    answers no other: built without a question, it is what all of them share. ``question_aware``
    says whether what is built depends on the questions it is built for.
    """

    @property
    def reads(self) -> Literal["document", "conversation", "either"]: ...

    @property
    def retrieves(self) -> bool: ...

    @property
    def per_question(self) -> bool: ...

    @property
    def question_aware(self) -> bool: ...

    @property
    def Config(self) -> type[BaseModel]: ...  # noqa: N802

    def __call__(
        self,
        tools: Tools,
        source: Any,
        questions: Sequence[Question],
        config: Any,
        /,
        *,
        identity: str | None = None,
    ) -> Memory:
        """``identity`` is the id of a memory that is in the store, where one is opened again."""
        ...


class SourceMemory(ABC, Generic[ConfigT]):
    """What every memory does the same: its identity, its record in the store, its source.

    ``id`` is a hash of all that decides the log: kind, configuration, model, source, and the
    prompts of ``writing_prompts``. ``identity`` stands for it where a memory that is in the store
    is opened again. A subclass sets the class attributes, which are those of ``MemoryKind``.
    """

    kind: ClassVar[str]
    reads: ClassVar[Literal["document", "conversation", "either"]] = "document"
    retrieves: ClassVar[bool] = False
    per_question: ClassVar[bool] = False
    question_aware: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]]

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: ConfigT | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        is_talk = isinstance(source, Conversation)
        if self.reads != "either" and is_talk != (self.reads == "conversation"):
            other = "conversations" if is_talk else "documents"
            raise UsageError(
                f"{self.kind} reads {self.reads}s, and {source.name} is none",
                hint=f"`mgl ask --help` lists the memories that read {other}",
            )
        if isinstance(source, Conversation):
            check_ids(source)
        for question in questions:
            check_question(question)
        self._tools = tools
        self._source = source
        self._questions = tuple(questions)
        self._config: ConfigT = config or self.Config()  # type: ignore[assignment]
        self._identity = identity

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        return memory_id(
            self.kind,
            self._recorded_config(),
            self._tools.llm.model_id,
            self._writing_prompts(),
            **self._scope(),
        )

    @property
    def _document(self) -> Document:
        """The source as one text: of a conversation its transcript."""
        source = self._source
        return source.transcript if isinstance(source, Conversation) else source

    @abstractmethod
    async def build(self) -> None:
        """Read the source into the log, from where the log ends."""

    @abstractmethod
    async def answer(self, question: Question) -> Answer:
        """Answer from what the log holds."""

    @abstractmethod
    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """What exporters draw, with the answers to show beside it."""

    def _recorded_config(self) -> dict[str, Any]:
        """The part of the configuration that decides the log."""
        return self._config.model_dump(mode="json")

    def _writing_prompts(self) -> Sequence[Prompt]:
        """The prompts that decide what stands in the log: none that only read it."""
        return ()

    def _scope(self) -> dict[str, Any]:
        """What the log is made of, besides configuration, model and prompts."""
        return {"document": self._source.id}

    def _record(self, *, chunks: int = 0, tokens: int = 0) -> MemoryRecord:
        """The memory's record: as the store has it, else as it is to be registered."""
        if (known := self._tools.store.find_memory(self.id)) is not None:
            return known
        return MemoryRecord(
            id=self.id,
            kind=self.kind,
            document_id=self._source.id,
            questions=tuple(question.text for question in self._questions),
            model_id=self._tools.llm.model_id,
            config=self._config.model_dump(mode="json"),
            chunks=chunks,
            tokens=tokens,
        )

    def _view(
        self,
        nodes: Sequence[ViewNode],
        edges: Sequence[ViewEdge],
        *,
        steps: int,
        answers: Sequence[Answer] = (),
    ) -> GraphView:
        """A view of nodes and edges over the memory's own source."""
        record = self._record()
        return GraphView(
            memory_id=record.id,
            memory=record.kind,
            model=record.model_id,
            document=self._document,
            questions=record.questions,
            steps=steps,
            nodes=tuple(nodes),
            edges=tuple(edges),
            answers=tuple(answers),
        )


@dataclass(frozen=True, slots=True)
class Recall:
    """What a memory finds for a question: the texts to show, and how it came to them.

    ``ranked`` are the numbers of the turns behind them, the best first. ``made_of`` are further
    turns that the texts are made of, where one is a summary of more than it stands for.
    """

    shown: Sequence[Shown]
    ranked: Sequence[int]
    trace: tuple[str, ...] = ()
    paths: tuple[tuple[str, ...], ...] = ()
    made_of: frozenset[int] = frozenset()

    @property
    def turns(self) -> frozenset[int]:
        """All turns that an answer from it is made of."""
        return self.made_of.union(*(numbers for numbers, _ in self.shown))


class LogMemory(SourceMemory[ConfigT], Generic[ConfigT, EditT, StateT]):
    """A memory whose log of edits makes a state; ``vocabulary`` says what the log holds."""

    vocabulary: ClassVar[Vocabulary[Any, Any]]

    @cached_property
    def _log(self) -> Log[EditT, StateT]:
        tools = self._tools
        return Log(tools.store, self.id, self._source, self.vocabulary, tools.observer)

    @property
    def state(self) -> StateT:
        """The state as the log has it now."""
        self._log.catch_up()
        return self._log.state


class TalkMemory(LogMemory[ConfigT, EditT, StateT], Generic[ConfigT, EditT, StateT]):
    """A memory that takes in a conversation turn by turn and is asked in between.

    A turn that is appended is in the log before ``append`` returns, and so is what it makes due. A
    subclass says what its log holds (``vocabulary``), what is due (``_settle``) and what it finds
    for a question (``recall``).
    """

    @cached_property
    def _writing(self) -> asyncio.Lock:
        return asyncio.Lock()

    @property
    def state(self) -> StateT:
        self._log.open(self._record)
        return self._log.state

    @property
    def _document(self) -> Document:
        self._log.open(self._record)
        source = self._log.source
        return source.transcript if isinstance(source, Conversation) else source

    @property
    def conversation(self) -> Conversation:
        """The conversation as the store has it now. UsageError over a document."""
        self._log.open(self._record)
        source = self._log.source
        if isinstance(source, Conversation):
            return source
        raise UsageError("this memory is of a document", hint="ask it, or look at it")

    @abstractmethod
    async def recall(self, question: Question, *, recent: Sequence[int] = ()) -> Recall:
        """Find what answers a question.

        ``recent`` are the numbers of turns that are shown as they are, up to the one that is
        replied to: what is found stands on turns before them.
        """

    @abstractmethod
    async def _settle(self, *, ended: bool) -> None:
        """Take in what the conversation has and the log lacks, and do what is due.

        ``ended``: no further turn is expected now.
        """

    @abstractmethod
    def _sampling(self) -> Sampling:
        """How an answer is sampled."""

    async def build(self) -> None:
        """Take in the turns that are not in the log yet, and do what is due."""
        async with self._writer():
            await self._settle(ended=True)

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; one that is there already, by id and text, changes nothing.

        Returns once the turn is in the log and what it makes due is done. InputError for a turn
        without text, or with the id of another.
        """
        if not turn.text.strip():
            raise InputError("a turn has no text", hint="leave it out")
        async with self._writer() as log:
            await self._settle(ended=False)
            while not log.has(turn):
                log.append_turn(turn)
                await self._settle(ended=False)

    async def end_session(self) -> None:
        """The session has ended, though no turn of the next one has come yet."""
        await self.build()

    async def flush(self) -> None:
        """The stream has ended."""
        await self.build()

    async def answer(self, question: Question) -> Answer:
        """Answer from what the memory holds, citing turns."""
        with self._log.showing():
            found = await self.recall(question)
        with self._log.showing(found.turns):
            answer = await answer_from_turns(
                self._tools.llm,
                self.conversation,
                found.shown,
                question,
                sampling=self._sampling(),
                trace=(self._judged_by, *found.trace),
                ranked=found.ranked,
            )
        return replace(answer, paths=found.paths)

    async def reply(self, turn: Turn, name: str) -> Answer:
        """Take in what somebody says, reply as ``name``, and take that in, too.

        The last turns are shown as they are; of what was said before, what is recalled. A turn that
        was replied to before gets that reply.
        """
        await self.append(turn)
        talk, own = self.conversation, f"{turn.id}+"
        last, given = self._log.number(turn.id), Turn(own, name, "", turn.time, turn.session)
        heard = talk.turns[last]
        forgotten = self._log.forgotten
        replies = (n for n in range(last + 1, len(talk.turns)) if talk.turns[n].id == own)
        replied = next(replies, None)
        if replied is not None and replied not in forgotten:
            return Answer(heard.text, talk.turns[replied].text, "low", (), ("replied to before",))
        kept = [number for number in range(last) if number not in forgotten]
        recent = [*kept[1 - RECENT :], last]
        question = Question(heard.text, heard.time, heard.speaker or None)
        with self._log.showing():
            found = await self.recall(question, recent=recent)
        replied = len(talk.turns)  # the reply goes with the turn that it becomes
        with self._log.showing(found.turns.union(recent, [replied])):
            said = await reply_to_turn(
                self._tools.llm,
                self.conversation,
                found.shown,
                recent,
                name=name,
                sampling=self._sampling(),
                trace=found.trace,
            )
        await self.append(replace(given, text=said.text))
        return replace(said, paths=found.paths)

    async def forget(
        self,
        turns: Collection[str] = (),
        *,
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Delete turns (by their ids) and all that was said before a time, with what only they
        support. A ``dry_run`` deletes nothing and says what would go.

        The words are gone from the store when this returns, for every memory of the conversation;
        descriptions that lost a source are made again with the next turn or build. InputError for
        a turn that is not there or was forgotten already.
        """

        def choose(log: Log[EditT, StateT]) -> tuple[frozenset[int], frozenset[str]]:
            if not turns and before is None:
                raise InputError("nothing to forget is named", hint="name turns or a day")
            gone = set(find_turn_numbers(log.turns, turns, log.forgotten).values())
            for number, turn in enumerate(log.turns):
                if before and number not in log.forgotten and is_before(turn, before):
                    gone.add(number)
            return frozenset(gone), frozenset()

        return await self._forget(choose, dry_run=dry_run)

    async def _forget(
        self,
        choose: Callable[[Log[EditT, StateT]], tuple[frozenset[int], frozenset[str]]],
        *,
        dry_run: bool,
    ) -> Forgotten:
        """Delete the turns that are chosen, by their numbers; nodes chosen besides are spared."""
        async with self._writer() as log:
            self.conversation  # noqa: B018  (UsageError over a document)
            gone, spared = choose(log)
            what, ids = Redaction(gone), tuple(log.turns[number].id for number in sorted(gone))
            before = log.state
            if gone and not dry_run:
                self._delete(what)
                after = log.state
            else:
                kind: Any = type(self)
                config = self._config.model_dump(mode="json")
                lost = Gone(self._source.id, what, tuple(log.turns))
                after = plan_deletion(kind, config, log.step, log.rows, lost).after
        removed = set(self._nodes(before)).difference(self._nodes(after))
        return Forgotten(
            ids,
            _in_order(removed),
            _in_order(self._stale(after)),
            _in_order(spared),
            self._count_renewals(after),
        )

    def _delete(self, what: Redaction) -> None:
        """Delete turns, or parts of them, for all memories of the conversation."""
        wiped = delete(self._tools.store, self._source.id, what)
        self._log.catch_up()
        if not wiped:
            self._tools.observer.note(
                "another process reads the store: what was deleted leaves its file when that ends"
            )

    @abstractmethod
    def _nodes(self, state: StateT) -> Collection[str]:
        """The ids of the nodes that a deletion may take."""

    @abstractmethod
    def _stale(self, state: StateT) -> Collection[str]:
        """The ids of the nodes that wait for another description."""

    @abstractmethod
    def _count_renewals(self, state: StateT) -> int:
        """How many model calls it takes to describe what is stale."""

    def export(self) -> dict[str, Any]:
        """All that the memory holds, as plain JSON values; of what was deleted, that it was."""
        talk = self.conversation
        return {
            **to_plain(self._log.state),
            "memory": self.id,
            "kind": self.kind,
            "conversation": {"id": talk.id, "name": talk.name},
            "turns": [
                to_plain(turn)
                for number, turn in enumerate(talk.turns)
                if number not in self._log.forgotten
            ],
            "forgotten": [talk.turns[number].id for number in sorted(self._log.forgotten)],
            "deletions": [
                {"step": row.chunk, "kind": row.op}
                for row in self._log.rows
                if row.op in (FORGET, MASK)
            ],
        }

    @asynccontextmanager
    async def _writer(self) -> AsyncIterator[Log[EditT, StateT]]:
        """The log, caught up, for one who writes: one at a time in a process."""
        async with self._writing:
            self._log.open(self._record)
            yield self._log

    @property
    def _judged_by(self) -> str:
        tools = self._tools
        alike, judged = tools.required_embedder.model_id, tools.required_reranker.model_id
        return f"alike by {alike}, judged by {judged}"


def _in_order(ids: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=lambda identity: (len(identity), identity)))


def to_plain(value: Any) -> Any:
    """Dataclasses, mappings, sets and times as plain JSON values."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = sorted(value) if isinstance(value, set | frozenset) else value
        return [to_plain(item) for item in items]
    return value.isoformat() if isinstance(value, datetime) else value
