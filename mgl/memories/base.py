"""What a memory is, the tools it is given, and what every memory does the same.

A memory reads a source into a log of edits (``build``) and answers from what the log holds
(``answer``). Everything it keeps is in the store: building again continues where the log ends.

``SourceMemory`` is the base of all: identity, record, source. ``LogMemory`` adds a log of edits
and the state that it makes. A memory of a conversation is in ``mgl.memories.talk``.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, field_validator

from mgl.errors import InputError, UsageError, WrongKind
from mgl.llm.base import LLM
from mgl.llm.calls import content_hash
from mgl.llm.replies import REPAIR
from mgl.memories.log import EditT, Log, StateT, Vocabulary
from mgl.memories.view import GraphView, MemorySize, ViewEdge, ViewNode
from mgl.observer import Observer
from mgl.prompt import Prompt, hashes
from mgl.retrieval.base import Embedder, Reranker
from mgl.store import MemoryRecord, Store
from mgl.text.times import check_time
from mgl.types import Answer, Conversation, Document, Question, Source

if TYPE_CHECKING:
    from mgl.retrieval.shifts import ShiftDetector

ID_PREFIX: Final = "mem_"
MEMORY_ID: Final = rf"{ID_PREFIX}[0-9a-f]{{12}}"
"""How a memory's id is written, as a regular expression."""

_ID: Final = re.compile(MEMORY_ID)

ToolT = TypeVar("ToolT")
ConfigT = TypeVar("ConfigT", bound=BaseModel)


def memory_id(
    kind: str,
    config: Mapping[str, Any],
    model_id: str,
    prompts: Collection[Prompt],
    **rest: Any,
) -> str:
    """The id of a memory, ``mem_`` and a hash of all that decides its log.

    ``rest`` says of what it is.

    ``prompts`` are those that ask for what stands in the log, and none that only read it; where
    there are any, the one that asks for a reply again (``mgl.llm.replies``) is one of them.
    """
    asked = hashes((*prompts, REPAIR)) if prompts else {}
    decided = {"kind": kind, "config": config, "model": model_id, "prompts": asked, **rest}
    return f"{ID_PREFIX}{content_hash(decided)[:12]}"


def is_memory_id(name: str) -> bool:
    """Whether a name is written as a memory's id is; no conversation can be called so."""
    return _ID.fullmatch(name) is not None


def check_name(name: str) -> None:
    """UsageError for a name that no new conversation can have."""
    if not name.strip():
        raise UsageError("a conversation needs a name", hint="for example: mgl chat diary")
    if name in (".", ".."):
        raise UsageError(
            f"{name!r} cannot be a conversation's name: no URL can hold it",
            hint="give the conversation another name",
        )
    if is_memory_id(name):
        raise UsageError(
            f"{name} is written as a memory's id is",
            hint="give the conversation another name",
        )


def _check_turns(conversation: Conversation) -> None:
    """InputError for an id that two turns have, or a time that no calendar reckons with."""
    ids = Counter(turn.id for turn in conversation.turns)
    for turn in conversation.turns:
        check_time(turn.time)
    if twice := [each for each, count in ids.items() if count > 1]:
        raise InputError(
            f"two turns have the id {twice[0]!r}", hint="give each turn an id of its own"
        )


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
    """A configuration of a kind that comes in two: the paper's, and one for small models.

    ``preset`` says which of the two this is; the configuration of the small kind derives from this
    one and has other defaults. ``mgl.memories.options.choose_kind`` picks the kind by it.
    ``READING`` are the options that decide how a memory is read, and nothing of what is in it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    READING: ClassVar[frozenset[str]] = frozenset()
    preset: Literal["paper", "small"] = "paper"

    @field_validator("preset")
    @classmethod
    def _check_preset(cls, given: str) -> str:
        if given != (own := cls.model_fields["preset"].default):
            raise ValueError(f"this configures the kind of preset {own}")
        return given


@dataclass(frozen=True, slots=True)
class Tools:
    """All that a memory may use."""

    llm: LLM
    store: Store
    observer: Observer
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    detectors: Callable[[str], ShiftDetector] | None = None

    def open_detector(self, name: str) -> ShiftDetector:
        """Open a topic detector by its adapter's name; UsageError without detectors."""
        return _require(self.detectors, "a detector of topics")(name)

    @property
    def required_embedder(self) -> Embedder:
        """The embedder; UsageError without one."""
        return _require(self.embedder, "an embedding model")

    @property
    def required_reranker(self) -> Reranker:
        """The reranker; UsageError without one."""
        return _require(self.reranker, "a reranker")


def _require(tool: ToolT | None, what: str) -> ToolT:
    if tool is None:
        raise UsageError(
            f"this memory needs {what}",
            hint="give one among its Tools",
        )
    return tool


class Memory(Protocol):
    """One memory over one source and the questions it is read for.

    ``id`` is stable: same source, questions, configuration and model give the same id. A memory
    is made by its ``MemoryKind``.
    """

    @property
    def id(self) -> str: ...

    @abstractmethod
    async def build(self) -> None:
        """Read the source into the log; resumable, and a finished build is left as it is."""

    @abstractmethod
    async def answer(self, question: Question) -> Answer:
        """Answer from what the log holds."""

    @abstractmethod
    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """What exporters draw, with the answers to show beside it."""

    def measure(self) -> MemorySize:
        """Count what a view shows; a kind that can count without one does."""
        return self.view().size


class MemoryKind(Protocol):
    """A class of memories; ``Config`` is its configuration, whose fields are its options.

    ``reads`` is the kind of source that it is made for, ``either`` where it takes both (files that
    end in .json or .jsonl are conversations then). ``retrieves``: it needs an embedder and a
    reranker. ``per_question``: each question has a memory of its own, which answers no other;
    built without a question, it is what all of them share. ``question_aware``: what is built
    depends on the questions it is built for.
    """

    reads: Literal["document", "conversation", "either"]
    retrieves: bool
    per_question: bool
    question_aware: bool
    Config: type[BaseModel]

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


class SourceMemory(Memory, Generic[ConfigT]):
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
            raise WrongKind(
                f"{self.kind} reads {self.reads}s, and {source.name} is none",
                hint=f"`mgl ask --kinds` lists the memories; take one that reads {other}",
            )
        if isinstance(source, Conversation):
            _check_turns(source)
        for question in questions:
            check_question(question)
        self._tools = tools
        self._source = source
        self._questions = tuple(questions)
        self._config: ConfigT = config or self.Config()  # type: ignore[assignment]
        self._identity = identity

    @cached_property
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

    def _recorded_config(self) -> dict[str, Any]:
        """The configuration as it decides the log, without the options that only read; its pace,
        ``in_flight``, is the default's."""
        reading = self._config.READING if isinstance(self._config, PresetConfig) else ()
        fields = type(self._config).model_fields
        config = self._config.model_dump(mode="json", exclude=set(reading))
        pace = {"in_flight": fields["in_flight"].default} if "in_flight" in fields else {}
        return {**config, **pace}

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
