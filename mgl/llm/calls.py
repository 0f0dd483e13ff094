"""The log of model calls: one row per call, which also serves as the cache.

A call's key is a hash of everything that decides its reply: model and weights, messages, tools,
JSON schema, sampling and seed. A completion that was logged under a key is replayed and not sent
again, whether its reply was valid or not: so a killed run resumes without paying a call twice, and
a finished run replays to the same records without a model. Only a person's new attempt asks anew
(``new_attempt``) for what the log has no usable reply of. The new calls have seeds of their own, so
that a replay finds the old replies, and then the new ones.

A call also knows its lineage: the turns of a conversation that its prompt shows, so that it is
deleted with them. The caller states it around the calls, and it holds for tasks started within:

    with note_shown(talk.id, {3, 4}):
        await llm.complete(...)

What is embedded or counted within has the same lineage, or one of its own (``note_made_of``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Protocol

from mgl.llm.base import Completion, Request
from mgl.types import StageUsage

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
"""``invalid`` does not match the schema; ``violated`` does, and breaks a rule that no grammar can
force. ``overflow`` is a prompt that a server found too long for its context. A server that
``failed`` answered other requests; one that was ``unavailable`` may not have."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """The turns of a conversation that a prompt shows, by their numbers; None for all so far.

    A summary that is shown counts as all turns that it was made of. ``since`` numbers the last
    deletion that the texts know of; None where nothing can be deleted meanwhile.
    """

    document_id: str
    turns: frozenset[int] | None = None
    since: int | None = None


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call. ``completion`` is None if none came back (time-out, refusal, lost server)."""

    key: str
    stage: str
    model_id: str
    request: Request
    completion: Completion | None
    outcome: Outcome
    error: str | None
    seconds: float
    lineage: Lineage | None = field(default=None, compare=False)


_LINEAGE: ContextVar[Lineage | None] = ContextVar("lineage", default=None)
_MADE_OF: ContextVar[Mapping[str, Collection[int]]] = ContextVar(
    "made_of", default=MappingProxyType({})
)
_Collected = tuple[list[tuple[str, Lineage | None]], dict[str, StageUsage]]
_COLLECTED: ContextVar[tuple[_Collected, ...]] = ContextVar("collected", default=())
_UNUSABLE: ContextVar[set[str] | None] = ContextVar("unusable", default=None)


@contextmanager
def note_shown(
    document_id: str, turns: Collection[int] | None = None, *, since: int | None = None
) -> Iterator[None]:
    """State which turns of a conversation the calls within show."""
    shown = None if turns is None else frozenset(turns)
    token = _LINEAGE.set(Lineage(document_id, shown, since))
    try:
        yield
    finally:
        _LINEAGE.reset(token)


@contextmanager
def note_shown_only(turns: Collection[int]) -> Iterator[None]:
    """State that the calls within show only these of the turns that were stated around them.

    Changes nothing where none were stated.
    """
    around = _LINEAGE.get()
    if around is None:
        yield
        return
    with note_shown(around.document_id, turns, since=around.since):
        yield


@contextmanager
def note_made_of(turns: Mapping[str, Collection[int]]) -> Iterator[None]:
    """State which turns each text is made of that is embedded or counted within. A text that is not
    named counts as made of all that the calls within show."""
    token = _MADE_OF.set(turns)
    try:
        yield
    finally:
        _MADE_OF.reset(token)


def find_lineage() -> Lineage | None:
    """Find what was stated of the calls that are made now."""
    return _LINEAGE.get()


def find_made_of(text: str) -> Collection[int] | None:
    """Find the turns that a text is made of; None where nobody stated any."""
    return _MADE_OF.get().get(text)


@contextmanager
def showing_deleted() -> Iterator[None]:
    """State that the calls within may repeat what was deleted: none is recorded with its words.

    Changes nothing where nobody stated around them what they show.
    """
    around = _LINEAGE.get()
    if around is None:
        yield
        return
    with note_shown(around.document_id, since=0):
        yield


@contextmanager
def collect_calls(
    calls: list[tuple[str, Lineage | None]], usage: dict[str, StageUsage] | None = None
) -> Iterator[None]:
    """Add the key and the lineage of each call that is made within, replayed and failed ones too,
    in order, and to ``usage`` what they took, by stage. An outer ``collect_calls`` gets both."""
    token = _COLLECTED.set((*_COLLECTED.get(), (calls, {} if usage is None else usage)))
    try:
        yield
    finally:
        _COLLECTED.reset(token)


def note_call(key: str) -> Lineage | None:
    """Note a call that is made now for ``collect_calls``; return its lineage."""
    lineage = _LINEAGE.get()
    for calls, _ in _COLLECTED.get():
        calls.append((key, lineage))
    return lineage


def note_usage(stage: str, spent: StageUsage) -> None:
    """Note what a call took for ``collect_calls``."""
    for _, usage in _COLLECTED.get():
        usage[stage] = usage.get(stage, StageUsage()) + spent


@contextmanager
def new_attempt() -> Iterator[None]:
    """Ask the model anew, once, for what the log has no usable reply of when this begins.

    It is for a person who tries again. Without it, what failed is replayed as it failed.
    """
    token = _UNUSABLE.set(set())
    try:
        yield
    finally:
        _UNUSABLE.reset(token)


def note_unusable(key: str) -> None:
    """Note that the model gave no usable reply under this key in the attempt that is made now."""
    unusable = _UNUSABLE.get()
    if unusable is not None:
        unusable.add(key)


def may_ask_anew(key: str) -> bool:
    """Whether an attempt is made now, and the unusable reply under this key is from before it."""
    unusable = _UNUSABLE.get()
    return unusable is not None and key not in unusable


class CallLog(Protocol):
    """Where calls are recorded and completions are replayed from. The store implements it."""

    def replay(self, key: str) -> CallRecord | None:
        """Find the record with a completion under this key."""
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
    """Hash a JSON value in canonical form (sorted keys, no white space) with sha256."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def request_json(request: Request) -> dict[str, Any]:
    """Convert a request to plain JSON values, as it is hashed and stored."""
    return {
        "messages": [
            {
                "role": message.role,
                "content": message.content,
                "tool_calls": [asdict(call) for call in message.tool_calls],
                "tool_call_id": message.tool_call_id,
            }
            for message in request.messages
        ],
        "json_schema": None if request.json_schema is None else dict(request.json_schema),
        "tools": [asdict(tool) for tool in request.tools],
        "sampling": asdict(request.sampling),
        "choices": list(request.choices),
    }


def call_key(model_id: str, request: Request) -> str:
    """Compute the cache key of a request to a model.

    The order of a schema's properties counts: the model writes them in that order.
    """
    value = {"model": model_id, **request_json(request)}
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def prompt_label(model_id: str, request: Request) -> str:
    """The text under which a prompt's token count is kept."""
    return f"prompt {call_key(model_id, request)}"


class MemoryCallLog:
    """A call log in memory, for tests and for calls not worth keeping."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self._completed: dict[str, CallRecord] = {}

    def replay(self, key: str) -> CallRecord | None:
        return self._completed.get(key)

    def record(self, call: CallRecord) -> None:
        self.records.append(call)
        if call.completion is not None:
            self._completed.setdefault(call.key, call)
