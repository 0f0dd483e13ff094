"""A model at work, as the runner sees it: a client for each unit of work, and a memory's tools.

``mgl.lab.workplace.Workplace`` is one over a home folder.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from mgl.llm.client import Client
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import MemoryKind, Tools
from mgl.observer import Observer
from mgl.retrieval.matching import TokenMatcher
from mgl.store import Store

__all__ = ["OpenModel", "Workplace"]

ResultT = TypeVar("ResultT")


class Workplace(Protocol):
    """One model, its tools, and the loop that they work in."""

    @property
    def facts(self) -> ModelFacts: ...

    def client(self) -> Client:
        """A client with a usage of its own. Called in the loop, as all that follows it."""
        ...

    def tools(self, llm: Client, kind: MemoryKind, store: Store, observer: Observer) -> Tools:
        """The tools of a memory that is kept in ``store``."""
        ...

    def matcher(self, written: str) -> TokenMatcher:
        """What matches texts by ``MODEL[:LAYER]``; errors as of ``open_matcher``."""
        ...

    def run(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT: ...


OpenModel = Callable[[str], AbstractContextManager[Workplace]]
"""Opens the workplace of a profile; UsageError for one that is unknown."""
