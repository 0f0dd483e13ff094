"""The three ways to have a model: chosen by its profile, brought by a program, or recorded.

    model = ChosenModel(ModelChoice("smollm2-135m"), home, store, observer, lambda: portal)
    engine = model.open_engine()

Each names its preset of memories, makes its engine, and says by which policy calls are made and in
which log they are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mgl.lab.model import TIMEOUT_S, TOKEN_S, ModelChoice, defer, find_context
from mgl.llm.client import Policy
from mgl.llm.concurrency import Portal
from mgl.llm.engines.recorded import REPLAYING, ModelFacts, RecordedCalls, RecordedEngine
from mgl.models.files import compute_sha256
from mgl.observer import Observer
from mgl.retrieval.opening import DEFAULT_EMBEDDER
from mgl.store import Store

if TYPE_CHECKING:
    from mgl.llm.base import Engine
    from mgl.llm.calls import CallLog
    from mgl.models.profiles import EngineName, ModelProfile


@dataclass
class ChosenModel:
    """The model of a choice; a running server is filled in when the model is first needed.

    ``open_loop`` opens the loop that engines live in, once.
    """

    choice: ModelChoice
    home: Path
    store: Store
    observer: Observer
    open_loop: Callable[[], Portal]

    @cached_property
    def resolved(self) -> ModelChoice:
        """The choice with its adapter's base, and with the server that is used, if any."""
        return self.choice.with_adapter(self.home).with_server(self.home, self.observer)

    @cached_property
    def profile(self) -> ModelProfile:
        choice = self.resolved
        return self.open_loop().run(lambda: choice.find_profile(self.home, self.observer))

    @property
    def preset(self) -> str:
        return self.profile.preset

    @property
    def engine_name(self) -> EngineName:
        return self.resolved.engine_for(self.profile)

    @property
    def policy(self) -> Policy:
        return Policy(TIMEOUT_S[self.engine_name], token_s=TOKEN_S)

    def open_engine(self) -> Engine:
        """Make the engine; it starts with the first call that is not in the store."""
        choice, profile = self.resolved, self.profile
        context = self.open_loop().run(lambda: find_context(choice, profile))
        return defer(choice, profile, self.home, self.store, self.observer, context_tokens=context)

    def open_log(self, owner: str | None) -> CallLog:
        """Open the log of calls that no memory owns; they belong to ``owner``, if there is one."""
        log = self.store.call_log()
        if owner is not None:
            log.attach(owner)
        return log

    def describe(self, engine: Engine, reranker: str) -> ModelFacts:
        """Describe the model and what memories retrieve with, before anything is asked."""
        profile, choice, name = self.profile, self.choice, self.engine_name
        pinned = profile.weights.sha256
        if choice.weights is not None and choice.weights.is_file():
            pinned = compute_sha256(choice.weights)
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
            embedder=choice.embedder or DEFAULT_EMBEDDER,
            reranker=reranker,
            adapter=choice.adapter,
        )


@dataclass
class OwnModel(ChosenModel):
    """A model that a program brings, which also closes it; memories of it are the papers'."""

    engine: Engine = field(kw_only=True)

    preset = "paper"
    engine_name: EngineName = "openai"

    def open_engine(self) -> Engine:
        return self.engine


@dataclass
class RecordedModel:
    """No model: the calls in the store are replayed as those of the model with these facts."""

    facts: ModelFacts
    store: Store

    policy = REPLAYING

    @property
    def preset(self) -> str:
        return self.facts.preset

    def open_engine(self) -> Engine:
        return RecordedEngine(self.store, self.facts)

    def open_log(self, _owner: str | None) -> CallLog:
        return RecordedCalls(self.store)

    def describe(self, *_: object) -> ModelFacts:
        return self.facts
