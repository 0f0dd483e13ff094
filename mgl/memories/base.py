"""What a memory is, and the tools it is given.

A memory reads a source into a log of edits (``build``) and answers from what the log holds
(``answer``). Everything it keeps is in the store: building again continues where the log ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import BaseModel

from mgl.llm.base import LLM
from mgl.retrieval.base import Embedder, Reranker
from mgl.store import Store
from mgl.types import Answer, Question, Source
from mgl.web.view import GraphView

__all__ = ["Memory", "MemoryKind", "Observer", "SilentObserver", "Tools"]


class Observer(Protocol):
    """Hears how far a long task is; the CLI draws it, tests record it."""

    def progress(self, stage: str, done: int, total: int) -> None: ...

    def note(self, text: str) -> None: ...


class SilentObserver:
    """Hears and says nothing."""

    def progress(self, stage: str, done: int, total: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Tools:
    """All that a memory may use. ``clock`` gives seconds since the epoch."""

    llm: LLM
    store: Store
    observer: Observer
    clock: Callable[[], float]
    embedder: Embedder | None = None
    reranker: Reranker | None = None


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


class MemoryKind(Protocol):
    """A class of memories; ``Config`` is its configuration, whose fields are its options."""

    @property
    def Config(self) -> type[BaseModel]: ...  # noqa: N802

    def __call__(
        self, tools: Tools, source: Source, questions: Sequence[Question], config: Any, /
    ) -> Memory: ...
