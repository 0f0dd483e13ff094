"""A model that repeats what was recorded, and nothing else: to replay a run without the model.

    >>> engine = recorded_engine(store, model)                  # doctest: +SKIP
    >>> llm = Client(engine, RecordedCalls(store), REPLAYING)   # doctest: +SKIP

The client replays completions from the log. A call that it asks the engine for has none: it failed
then as it fails now, or was never made, which ends the replay.
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

REPLAYING: Final = Policy(max_retries=0, outage_s=0.0)
"""Failed calls are not retried."""

FAILURES: Final[dict[str, type[EngineError]]] = {
    "timeout": EngineTimeout,
    "overflow": ContextOverflow,
    "refused": EngineRejected,
    "failed": EngineFailed,
}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model and its tools before the first call: all that a replay needs.

    ``weights_sha256`` is the profile's pin, or the hash of the file that was given instead; None
    for a server, which has its own weights. ``sampling`` is the publisher's; ``embedder`` and
    ``reranker`` are the names of what memories retrieve with.
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
    """A read-only ``CallLog``."""

    def __init__(self, store: RecordedRun) -> None:
        self._store = store

    def replay(self, key: str) -> CallRecord | None:
        return self._store.find_call(key)

    def record(self, call: CallRecord) -> None:
        """Do nothing: the log has it."""


class RecordedEngine:
    """An ``Engine`` that fails as it failed; EngineUnavailable for calls that were never made."""

    def __init__(self, store: RecordedRun, facts: ModelFacts) -> None:
        self._store = store
        self.model_id = facts.model_id
        self.context_tokens = facts.context_tokens
        self.native_tools = facts.native_tools
        self.concurrency = facts.concurrency

    async def generate(self, request: Request) -> Completion:
        known = self._store.find_failure(call_key(self.model_id, request))
        if known is None or known.outcome not in FAILURES:
            raise self._not_recorded("a call")
        raise FAILURES[known.outcome](
            known.error or "", hint="the recorded call failed the same way"
        )

    async def count_tokens(self, texts: Sequence[str]) -> NoReturn:
        raise self._not_recorded(f"a token count of {len(texts)} texts")

    async def count_prompt_tokens(self, request: Request) -> NoReturn:
        raise self._not_recorded(f"a token count of {len(request.messages)} messages")

    async def count_waiting(self) -> int | None:
        return None

    async def aclose(self) -> None:
        pass

    def _not_recorded(self, what: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"the log in {self._store.path} lacks {what} of {self.model_id}",
            hint="replay with the MGL_HOME and the code that the run was made with",
        )


def recorded_engine(store: RecordedRun, facts: ModelFacts) -> DeferredEngine:
    """Make the engine of a replay; it knows every token count in the store."""

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
