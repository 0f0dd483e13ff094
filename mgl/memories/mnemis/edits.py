"""Mnemis' edits as rows of the log.

A step of the log is an episode that was taken in, a work on the hierarchy, or a deletion. A row
``reply`` says that a reply of a model could not be used; what it was to tell is missing, and the
rest goes on. Rows of ``EVENTS`` change nothing in the state: a turn was added, the hierarchy was
seen to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mgl.memories.mnemis.state import (
    AddEntity,
    AddEpisode,
    AddFact,
    Assign,
    Close,
    Describe,
    DropHierarchy,
    Edit,
    Forget,
    PutCategory,
    Repeat,
)
from mgl.store import EditRecord
from mgl.store.vocabulary import Vocabulary
from mgl.types import Span

__all__ = ["EVENTS", "Failed", "record", "resolved"]

EVENTS: Final = ("turn", "hierarchy")


@dataclass(frozen=True, slots=True)
class Failed:
    """A reply that could not be used: at which stage, and why."""

    what: str
    problem: str


_WORDS: Final = Vocabulary[Edit | Failed](
    {
        "add_episode": AddEpisode,
        "add_entity": AddEntity,
        "repeat": Repeat,
        "describe": Describe,
        "add_fact": AddFact,
        "close": Close,
        "put_category": PutCategory,
        "assign": Assign,
        "drop_hierarchy": DropHierarchy,
        "forget": Forget,
        "reply": Failed,
    }
)


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
    if span is None and isinstance(edit, AddEntity | AddFact | Repeat):
        span = edit.mention.span
    elif span is None and isinstance(edit, AddEpisode):
        span = edit.episode.span
    return _WORDS.record(
        step, edit, rejected=rejected, repaired=repaired, call_key=call_key, span=span
    )


def resolved(row: EditRecord) -> Edit | None:
    """The edit of a row; None where it was rejected, or tells of a reply or an event alone."""
    edit = None if row.op in EVENTS else _WORDS.read(row)
    return None if isinstance(edit, Failed) else edit
