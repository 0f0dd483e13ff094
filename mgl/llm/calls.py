"""The record of model calls: one row a call, and the cache that is read off it.

A call's key is a hash of everything that decides its reply: model and weights, messages, tools,
JSON schema, sampling and seed. A completion that was logged under a key is replayed instead of
asked for again, whether its reply turned out valid or not: so a killed run resumes with no call
paid twice, and a finished run replays to the same records without a model.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from mgl.llm.base import Completion, Request

__all__ = [
    "CallLog",
    "CallRecord",
    "MemoryCallLog",
    "Outcome",
    "RecordedRun",
    "TokenCounts",
    "call_key",
    "content_hash",
    "request_json",
]

Outcome = Literal[
    "ok",
    "empty",
    "invalid",
    "violated",
    "truncated",
    "timeout",
    "overflow",
    "refused",
    "failed",
    "unavailable",
]
"""``invalid`` is not of the schema's form; ``violated`` is, and breaks a rule beyond any form.
``overflow`` is a prompt that a server found too long for its context. A server that ``failed``
answered others; one that was ``unavailable`` may not have."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call. ``completion`` is None where none came back (time-out, refusal, lost server)."""

    key: str
    stage: str
    model_id: str
    request: Request
    completion: Completion | None
    outcome: Outcome
    error: str | None
    seconds: float


class CallLog(Protocol):
    """Where calls are recorded and completions replayed from. The store implements it."""

    def replay(self, key: str) -> CallRecord | None:
        """The record with a completion under this key, if there is one."""
        ...

    def record(self, call: CallRecord) -> None: ...


class TokenCounts(Protocol):
    """Where token counts are kept, by model and text. The store implements it."""

    def token_counts(self, model_id: str, texts: Sequence[str]) -> list[int | None]: ...

    def put_token_counts(self, model_id: str, counts: Mapping[str, int]) -> None: ...


class RecordedRun(TokenCounts, Protocol):
    """The calls and token counts of an earlier run. The store implements it."""

    @property
    def path(self) -> Path: ...

    def find_call(self, key: str) -> CallRecord | None:
        """The first call under this key that has a completion."""
        ...

    def find_failure(self, key: str) -> CallRecord | None:
        """The last call under this key that failed."""
        ...


def content_hash(value: Mapping[str, Any] | list[Any] | str) -> str:
    """sha256 of a JSON value in canonical form (sorted keys, no white space)."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def request_json(request: Request) -> dict[str, Any]:
    """A request as plain JSON values, as it is hashed and stored."""
    return {
        "messages": [asdict(message) for message in request.messages],
        "json_schema": None if request.json_schema is None else dict(request.json_schema),
        "tools": [asdict(tool) for tool in request.tools],
        "sampling": asdict(request.sampling),
        "choices": list(request.choices),
    }


def call_key(model_id: str, request: Request) -> str:
    """The cache key of a request to a model.

    The order of a schema's properties counts: the model writes them in that order.
    """
    value = {"model": model_id, **request_json(request)}
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class MemoryCallLog:
    """A call log that forgets when its process ends: for tests, and for calls not worth keeping."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self._completed: dict[str, CallRecord] = {}

    def replay(self, key: str) -> CallRecord | None:
        return self._completed.get(key)

    def record(self, call: CallRecord) -> None:
        self.records.append(call)
        if call.completion is not None:
            self._completed.setdefault(call.key, call)
