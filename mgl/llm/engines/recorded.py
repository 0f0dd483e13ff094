"""A model that says again what it said, and nothing else: for replaying a run without it.

    >>> engine = recorded_engine(store, model)                  # doctest: +SKIP
    >>> llm = Client(engine, RecordedCalls(store), REPLAYING)   # doctest: +SKIP

Completions are replayed by the client, from the log. What it asks the engine for has none: that
call failed before as it fails now, or was never made, which ends a replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from mgl.errors import (
    ContextOverflow,
    EngineError,
    EngineFailed,
    EngineRejected,
    EngineTimeout,
    EngineUnavailable,
)
from mgl.llm.base import Completion, Engine, Request
from mgl.llm.calls import CallRecord, RecordedRun, call_key
from mgl.llm.client import Policy
from mgl.llm.engines.deferred import DeferredEngine
from mgl.models.profiles import EngineName

__all__ = [
    "FAILURES",
    "REPLAYING",
    "ModelFacts",
    "RecordedCalls",
    "RecordedEngine",
    "recorded_engine",
]

REPLAYING: Final = Policy(max_retries=0, outage_s=0.0)
"""What failed is not tried again."""

FAILURES: Final[dict[str, type[EngineError]]] = {
    "timeout": EngineTimeout,
    "overflow": ContextOverflow,
    "refused": EngineRejected,
    "failed": EngineFailed,
}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model and its tools before anything is asked: all that a replay needs.

    ``weights_sha256`` is the profile's pin, or of the file that was given instead; None for a
    server, which has its own. ``sampling`` is the publisher's; ``embedder`` and ``reranker`` are
    what memories retrieve with, by their names.
    """

    profile: str
    model_id: str
    engine: EngineName
    context_tokens: int
    native_tools: bool
    concurrency: int
    preset: str
    weights_sha256: str | None
    sampling: Mapping[str, float]
    embedder: str
    reranker: str


class RecordedCalls:
    """A ``CallLog`` that is read and not written."""

    def __init__(self, store: RecordedRun) -> None:
        self._store = store

    def replay(self, key: str) -> CallRecord | None:
        """The first record under this key that has a completion."""
        return self._store.find_call(key)

    def record(self, call: CallRecord) -> None:
        """Nothing: the log has it."""


class RecordedEngine:
    """An ``Engine`` that fails as it failed; EngineUnavailable for what it was never asked."""

    def __init__(self, store: RecordedRun, facts: ModelFacts) -> None:
        self._store = store
        self.model_id = facts.model_id
        self.context_tokens = facts.context_tokens
        self.native_tools = facts.native_tools
        self.concurrency = facts.concurrency

    async def generate(self, request: Request) -> Completion:
        known = self._store.find_failure(call_key(self.model_id, request))
        if known is None or known.outcome not in FAILURES:
            raise self._unknown("a call")
        raise FAILURES[known.outcome](known.error or "", hint="it failed so when it was issued")

    async def count_tokens(self, texts: Sequence[str]) -> NoReturn:
        raise self._unknown(f"a token count of {len(texts)} texts")

    async def count_prompt_tokens(self, request: Request) -> NoReturn:
        raise self._unknown(f"a token count of {len(request.messages)} messages")

    async def waiting(self) -> int | None:
        return None

    async def aclose(self) -> None:
        pass

    def _unknown(self, what: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"the log in {self._store.path} lacks {what} of {self.model_id}",
            hint="replay with the MGL_HOME and the code that the run was made with",
        )


def recorded_engine(store: RecordedRun, facts: ModelFacts) -> DeferredEngine:
    """The engine of a replay: it knows every token count that is in the store."""

    async def start() -> Engine:
        return RecordedEngine(store, facts)

    return DeferredEngine(
        start,
        store,
        model_id=facts.model_id,
        context_tokens=facts.context_tokens,
        native_tools=facts.native_tools,
        concurrency=facts.concurrency,
    )
