"""What a memory is, and the tools it is given.

A memory reads a source into a log of edits (``build``) and answers from what the log holds
(``answer``). Everything it keeps is in the store: building again continues where the log ends.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from mgl.errors import InputError, UsageError
from mgl.llm.base import LLM
from mgl.llm.calls import content_hash
from mgl.llm.repairs import REPAIR
from mgl.memories.view import GraphView
from mgl.observer import Observer
from mgl.prompt import Prompt, hashes
from mgl.retrieval.base import Embedder, Reranker
from mgl.store import Store
from mgl.types import Answer, Conversation, Document, Question, Turn

__all__ = [
    "ConversationMemory",
    "Memory",
    "MemoryKind",
    "PresetConfig",
    "Tools",
    "check_ids",
    "check_text",
    "memory_id",
]

ToolT = TypeVar("ToolT")


def memory_id(
    kind: str,
    config: Mapping[str, Any],
    model_id: str,
    prompts: Collection[Prompt],
    **rest: Any,
) -> str:
    """The id of a memory: a hash of all that decides its log; ``rest`` says of what it is.

    ``prompts`` are those that ask for what stands in the log, and none that only read it; where
    there are any, the one that asks for a reply again (``mgl.llm.repairs``) is one of them.
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
