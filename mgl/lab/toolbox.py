"""What memories work with: a model's client, and the models that they retrieve with.

Everything here is made when it is first needed, and put away when the toolbox is closed.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mgl.lab.model import TIMEOUT_S, ModelChoice, context_of, defer
from mgl.llm.concurrency import Portal
from mgl.memories.base import MemoryKind, Tools
from mgl.observer import Observer
from mgl.retrieval.opening import YES_NO
from mgl.store import Store

if TYPE_CHECKING:
    from mgl.llm.base import LLM
    from mgl.llm.calls import CallLog
    from mgl.llm.client import Client
    from mgl.llm.engines.deferred import DeferredEngine
    from mgl.llm.engines.recorded import ModelFacts
    from mgl.models.profiles import EngineName, ModelProfile
    from mgl.retrieval.base import Embedder, Reranker
    from mgl.retrieval.matching import TokenMatcher
    from mgl.retrieval.models import Source
    from mgl.store.calls import StoreCallLog

__all__ = ["Toolbox"]


class Toolbox:
    """The tools of one home folder; ``embedder`` and ``reranker`` name models, None the defaults.

    Calls, token counts and vectors are kept in ``store``, which stays its owner's. With
    ``recorded`` no model runs: what the store has of that one is said again.
    """

    def __init__(
        self,
        home: Path,
        store: Store,
        choice: ModelChoice,
        observer: Observer,
        *,
        embedder: str | None = None,
        reranker: str | None = None,
        recorded: ModelFacts | None = None,
    ) -> None:
        self._home = home
        self._store = store
        self._choice = choice
        self._observer = observer
        self._embedder_name, self._reranker_name = embedder, reranker
        self._recorded = recorded
        self._closing = ExitStack()

    def close(self) -> None:
        self._closing.close()

    @cached_property
    def loop(self) -> Portal:
        """Where engines live."""
        return self._closing.enter_context(Portal())

    @cached_property
    def profile(self) -> ModelProfile:
        """The profile of the model that was chosen."""
        return self._resolved.load_profile(self._home)

    @cached_property
    def engine(self) -> DeferredEngine:
        """The engine of the model; it starts with the first call that has to be issued."""
        if self._recorded is not None:
            from mgl.llm.engines.recorded import recorded_engine

            return recorded_engine(self._store, self._recorded)
        choice, profile = self._resolved, self.profile
        context = self.loop.run(lambda: context_of(choice, profile))
        engine = defer(
            choice, profile, self._home, self._store, self._observer, context_tokens=context
        )
        self._closing.callback(self.loop.run, engine.aclose)
        return engine

    def client(self) -> tuple[Client, StoreCallLog]:
        """A client of the model, and the log in which its calls are kept."""
        from mgl.llm.client import Client, Policy

        log = self._store.call_log()
        return Client(self.engine, log, Policy(timeout_s=TIMEOUT_S[self.engine_name])), log

    def unattached(self) -> tuple[Client, CallLog]:
        """As ``client``, where no memory of this store owns the calls."""
        if self._recorded is None:
            return self.client()
        from mgl.llm.client import Client
        from mgl.llm.engines.recorded import REPLAYING, RecordedCalls

        log = RecordedCalls(self._store)
        return Client(self.engine, log, REPLAYING), log

    @property
    def engine_name(self) -> EngineName:
        """What runs the model."""
        return self._resolved.engine_for(self.profile)

    def tools(
        self,
        llm: LLM,
        kind: MemoryKind | None = None,
        *,
        store: Store | None = None,
        observer: Observer | None = None,
    ) -> Tools:
        """A memory's tools; those that it retrieves with only where ``kind`` does. ``store`` is
        where the memory is kept, if not where its calls are."""
        retrieves = kind is not None and kind.retrieves
        return Tools(
            llm=llm,
            store=store or self._store,
            observer=observer or self._observer,
            clock=time.time,
            embedder=self._embedder if retrieves else None,
            reranker=self._reranker(llm) if retrieves else None,
        )

    @cached_property
    def _resolved(self) -> ModelChoice:
        """The choice, looked at when a model is first needed: it may be a server that runs."""
        return self._choice.with_server(self._home, self._observer)

    @cached_property
    def _embedder(self) -> Embedder:
        from mgl.retrieval.opening import DEFAULT_EMBEDDER, open_embedder

        name = self._embedder_name or DEFAULT_EMBEDDER
        opened = open_embedder(name, self._home, source=self._source, cache=self._store)
        self._closing.callback(opened.close)
        return opened

    def _reranker(self, llm: LLM) -> Reranker:
        """The reranker, one for all; where it asks a model, the one that is given."""
        if self._reranker_name == YES_NO:
            from mgl.retrieval.rerankers.language_model import YesNoReranker

            return YesNoReranker(llm)
        return self._own_reranker

    @cached_property
    def _own_reranker(self) -> Reranker:
        from mgl.retrieval.opening import DEFAULT_RERANKER, open_reranker

        name = self._reranker_name or DEFAULT_RERANKER
        opened = open_reranker(name, self._home, source=self._source, embedder=self._embedder)
        self._closing.callback(self.loop.run, opened.aclose)
        return opened

    def matcher(self, written: str) -> TokenMatcher:
        """What matches texts token by token, with the pairs that the store has."""
        from mgl.retrieval.matching import open_matcher

        return open_matcher(written, self._home, self._source, self._store)

    @property
    def _source(self) -> Source:
        from mgl.retrieval.models import Source

        def report(label: str, done: int, total: int) -> None:
            self._observer.progress(f"fetching {label} (MB)", done // 1_000_000, total // 1_000_000)

        choice = self._choice
        return Source(models=choice.models, allow_hub=choice.allow_hub, progress=report)
