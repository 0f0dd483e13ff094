"""Mnemis' edits as rows of the log.

A step of the log is an episode that was taken in, or a work on the hierarchy. A row ``reply`` says
that a reply of a model could not be used; what it was to tell is missing, and the rest goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from mgl.memories.mnemis.state import (
    AddEntity,
    AddEpisode,
    AddFact,
    Assign,
    Close,
    Describe,
    DropHierarchy,
    Edit,
    PutCategory,
    Repeat,
)
from mgl.store import EditRecord
from mgl.store.records import EditOutcome
from mgl.types import Span

__all__ = ["Failed", "record", "resolved"]


@dataclass(frozen=True, slots=True)
class Failed:
    """A reply that could not be used: at which stage, and why."""

    what: str
    problem: str


_KINDS: Final[Mapping[str, type[Edit | Failed]]] = {
    "add_episode": AddEpisode,
    "add_entity": AddEntity,
    "repeat": Repeat,
    "describe": Describe,
    "add_fact": AddFact,
    "close": Close,
    "put_category": PutCategory,
    "assign": Assign,
    "drop_hierarchy": DropHierarchy,
    "reply": Failed,
}
_NAMES: Final[Mapping[type[Edit | Failed], str]] = {kind: name for name, kind in _KINDS.items()}


def record(
    step: int,
    edit: Edit | Failed,
    *,
    rejected: str | None = None,
    repaired: str | None = None,
    call_key: str | None = None,
    span: Span | None = None,
) -> EditRecord:
    """An edit as a row: applied, or ``rejected`` or ``repaired`` with the reason.

    ``span`` is the place in the source that it stands on, by default the edit's own.
    """
    outcome: EditOutcome = "rejected" if rejected else "repaired" if repaired else "applied"
    name = _NAMES[type(edit)]
    payload = _adapter(name).dump_python(edit, mode="json")
    if span is None and isinstance(edit, AddEntity | AddFact | Repeat):
        span = edit.mention.span
    elif span is None and isinstance(edit, AddEpisode):
        span = edit.episode.span
    return EditRecord(step, name, payload, outcome, rejected or repaired, span, call_key=call_key)


def resolved(row: EditRecord) -> Edit | None:
    """The edit of a row; None where it was rejected, or tells of a reply alone."""
    if row.outcome == "rejected" or row.op == "reply":
        return None
    edit: Edit = _adapter(row.op).validate_python(row.payload)
    return edit


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[name])
