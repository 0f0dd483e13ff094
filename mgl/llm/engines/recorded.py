"""A model that repeats what was recorded, and nothing else: to replay a run without the model.

    >>> engine = RecordedEngine(store, model)                   # doctest: +SKIP
    >>> llm = Client(engine, RecordedCalls(store), REPLAYING)   # doctest: +SKIP

The client replays completions from the log. A call that it asks the engine for has none: it failed
then as it fails now, or was never made, which ends the replay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mgl.errors import (
    ContextOverflow,
    EngineError,
    EngineFailed,
    EngineRejected,
    EngineTimeout,
    EngineUnavailable,
)
from mgl.llm.base import Completion, Request
from mgl.llm.calls import CallRecord, RecordedRun, call_key, prompt_label
from mgl.llm.client import Policy
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
    ``reranker`` are the names of what memories retrieve with, ``adapter`` that of the model's LoRA.
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
    adapter: str | None = None


class RecordedCalls:
    """A read-only ``CallLog``."""

    def __init__(self, store: RecordedRun) -> None:
        self._store = store

    def replay(self, key: str) -> CallRecord | None:
        return self._store.find_call(key)

    def record(self, call: CallRecord) -> None:
        """Do nothing: the log has it."""


class RecordedEngine:
    """An ``Engine`` that fails as it failed; EngineUnavailable for what was never asked.

    It knows every token count in the store.
    """

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

    async def count_tokens(self, texts: Sequence[str]) -> list[int]:
        counts = self._store.token_counts(self.model_id, texts)
        known = [tokens for tokens in counts if tokens is not None]
        if len(known) < len(texts):
            raise self._not_recorded("a token count")
        return known

    async def count_prompt_tokens(self, request: Request) -> int:
        (tokens,) = await self.count_tokens([prompt_label(self.model_id, request)])
        return tokens

    async def aclose(self) -> None:
        pass

    def _not_recorded(self, what: str) -> EngineUnavailable:
        return EngineUnavailable(
            f"the log in {self._store.path} lacks {what} of {self.model_id}",
            hint="replay with the MGL_HOME and the code that the run was made with",
        )
