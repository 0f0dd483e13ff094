"""What a memory is, and the tools it is given.

A memory reads a source into a log of edits (``build``) and answers from what the log holds
(``answer``). Everything it keeps is in the store: building again continues where the log ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mgl.llm.base import LLM
from mgl.store import Store
from mgl.types import Answer, Document, Question

__all__ = ["Memory", "Observer", "SilentObserver", "Tools"]


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


class Memory(Protocol):
    """One memory over one source. ``id`` is stable: same source, questions, config and model."""

    @property
    def id(self) -> str: ...

    async def build(self, source: Document, questions: Sequence[Question] = ()) -> None:
        """Read the source into the log; resumable, and a finished build is left as it is."""
        ...

    async def answer(self, question: Question) -> Answer: ...
