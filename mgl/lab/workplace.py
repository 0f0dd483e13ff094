"""One model at work for memories that are kept in stores of their own, one beside another.

    >>> with Workplace.open(home, store, ModelChoice("smollm2-135m"), observer) as place:
    ...     place.facts.model_id                                        # doctest: +SKIP

Calls, token counts and vectors go to the home's store, so that nothing is paid twice.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mgl.lab.model import ModelChoice
from mgl.lab.toolbox import Toolbox
from mgl.llm.engines.recorded import ModelFacts
from mgl.memories.base import MemoryKind, Tools
from mgl.models.weights.hashes import sha256_of
from mgl.observer import Observer
from mgl.retrieval.opening import DEFAULT_EMBEDDER, DEFAULT_RERANKER
from mgl.store import Store

if TYPE_CHECKING:
    from mgl.llm.calls import CallLog
    from mgl.llm.client import Client
    from mgl.retrieval.matching import TokenMatcher

__all__ = ["Workplace"]

ResultT = TypeVar("ResultT")


class Workplace:
    """A ``mgl.evaluation.runs.workplace.Workplace``."""

    def __init__(self, toolbox: Toolbox, facts: ModelFacts) -> None:
        self._toolbox = toolbox
        self.facts = facts

    @classmethod
    @contextmanager
    def open(
        cls,
        home: Path,
        store: Store,
        choice: ModelChoice,
        observer: Observer,
        *,
        embedder: str | None = None,
        reranker: str | None = None,
    ) -> Iterator[Self]:
        """The workplace of a model, which starts with its first call. Errors as of ``Lab.open``."""
        toolbox = Toolbox(home, store, choice, observer, embedder=embedder, reranker=reranker)
        try:
            yield cls(toolbox, _facts(toolbox, choice.weights, embedder, reranker))
        finally:
            toolbox.close()

    @classmethod
    @contextmanager
    def recorded(
        cls,
        home: Path,
        store: Store,
        facts: ModelFacts,
        observer: Observer,
        *,
        models: Path | None = None,
    ) -> Iterator[Self]:
        """The workplace of a model that says again what it said (``mgl.llm.engines.recorded``)."""
        toolbox = Toolbox(
            home,
            store,
            ModelChoice(models=models),
            observer,
            embedder=facts.embedder,
            reranker=facts.reranker,
            recorded=facts,
        )
        try:
            yield cls(toolbox, facts)
        finally:
            toolbox.close()

    def client(self) -> Client:
        """A client with a usage of its own; all share what the engine takes at once."""
        client, log = self._first
        return client.beside(log)

    def tools(self, llm: Client, kind: MemoryKind, store: Store, observer: Observer) -> Tools:
        """The tools of a memory that is kept in ``store``."""
        return self._toolbox.tools(llm, kind, store=store, observer=observer)

    def matcher(self, written: str) -> TokenMatcher:
        """What matches texts by ``MODEL[:LAYER]``; errors as of ``open_matcher``."""
        return self._toolbox.matcher(written)

    def run(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """The result of the coroutine that ``make`` gives, in the loop of the engine."""
        return self._toolbox.loop.run(make)

    @cached_property
    def _first(self) -> tuple[Client, CallLog]:
        return self._toolbox.unattached()


def _facts(
    toolbox: Toolbox, weights: Path | None, embedder: str | None, reranker: str | None
) -> ModelFacts:
    profile, engine, name = toolbox.profile, toolbox.engine, toolbox.engine_name
    pinned = profile.weights.sha256
    if weights is not None and weights.is_file():
        pinned = sha256_of(weights)
    return ModelFacts(
        profile=profile.name,
        model_id=engine.model_id,
        engine=name,
        context_tokens=engine.context_tokens,
        native_tools=engine.native_tools,
        concurrency=engine.concurrency,
        preset=profile.preset,
        weights_sha256=None if name == "openai" else pinned,
        sampling=profile.sampling.model_dump(),
        embedder=embedder or DEFAULT_EMBEDDER,
        reranker=reranker or DEFAULT_RERANKER,
    )
