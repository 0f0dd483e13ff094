"""What goes with some turns, before anything is deleted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from mgl.errors import InputError
from mgl.memories.deletion import Forgotten, is_before, numbered
from mgl.memories.mnemis.state import State
from mgl.types import Turn

__all__ = ["chosen", "compare_states"]


def compare_states(turns: Sequence[str], before: State, after: State) -> Forgotten:
    """Return what the states before and after a deletion of turns differ in."""
    removed = (
        *(each for each in before.entities if each not in after.entities),
        *(each for each in before.facts if each not in after.facts),
    )
    return Forgotten(tuple(turns), removed, tuple(sorted(after.stale)))


def chosen(
    turns: Sequence[Turn],
    forgotten: Collection[int],
    *,
    ids: Collection[str],
    before: datetime | None,
) -> frozenset[int]:
    """The numbers of turns that are named, and of all that were said before a time.

    InputError for a turn that is not there, or was forgotten, and where nothing is named.
    """
    if not ids and before is None:
        raise InputError("nothing to forget is named", hint="name turns or a day")
    named = set(numbered(turns, ids, forgotten).values())
    return frozenset(
        number
        for number, turn in enumerate(turns)
        if number in named
        or (before is not None and number not in forgotten and is_before(turn, before))
    )
