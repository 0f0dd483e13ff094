"""The log of one memory, and the state that it makes.

Several processes may write: each step has a number, and whoever comes second reads the log again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from mgl.errors import InputError, StoreConflict
from mgl.memories.base import Observer
from mgl.memories.mnemis.edits import resolved
from mgl.memories.mnemis.state import EMPTY, State, replay
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.types import Conversation, Source, Turn

__all__ = ["Log", "holds"]

_OTHERS: Final = ("turn", "hierarchy")
"""Rows that change nothing in the state: a turn was added, the hierarchy was seen to."""


class Log:
    """``state`` and the ``step`` that comes next, as of the last time that it caught up."""

    def __init__(self, store: Store, identity: str, source: Source, observer: Observer) -> None:
        self._store = store
        self._id = identity
        self._source = source
        self._observer = observer
        self.state: State = EMPTY
        self.step = 0

    def open(self, describe: Callable[[], MemoryRecord]) -> None:
        """Register source and memory where they are new, and catch up."""
        if isinstance(self._source, Conversation):
            self._store.put_conversation(self._source)
        else:
            self._store.put_document(self._source)
        if self._store.steps(self._id) == 0:
            self._store.put_memory(describe())
        self.catch_up()

    def catch_up(self) -> None:
        """Apply what is in the log and not in the state."""
        if self._store.steps(self._id) > self.step:
            rows = self._store.edits(self._id, since=self.step)
            edits = (resolved(row) for row in rows if row.op not in _OTHERS)
            self.state = replay((edit for edit in edits if edit is not None), self.state)
            self.step = rows[-1].chunk + 1

    @property
    def source(self) -> Source:
        """The source as the store has it now."""
        if isinstance(self._source, Conversation):
            return self._store.conversation(self._source.id)
        return self._source

    @property
    def rows(self) -> list[EditRecord]:
        """The rows of edits, in order."""
        return [row for row in self._store.edits(self._id) if row.op not in _OTHERS]

    @property
    def categorised(self) -> int:
        """How many entities there were when the hierarchy was last seen to."""
        rows = self._store.edits(self._id)
        return next((r.payload["entities"] for r in reversed(rows) if r.op == "hierarchy"), 0)

    def write(self, rows: Sequence[EditRecord]) -> None:
        """Append a step; where another process wrote it first, that one is taken instead."""
        try:
            self._store.append_edits(self._id, self.step, rows)
        except StoreConflict:
            self._observer.note("another process writes to this memory: reading its log")
        self.catch_up()

    def add(self, turn: Turn, turns: Sequence[Turn]) -> None:
        """Append a turn to the conversation, behind those that it has."""
        row = EditRecord(self.step, "turn", {"number": len(turns)}, "applied")
        with suppress(StoreConflict):
            self._store.append_turn(self._source.id, len(turns), turn, self._id, row)
        self.catch_up()


def holds(turns: Sequence[Turn], turn: Turn) -> bool:
    """Whether a turn is among some; InputError where another has its id."""
    known = {own.id: own for own in turns}
    if turn.id in known and known[turn.id] != turn:
        raise InputError(
            f"the conversation has another turn with the id {turn.id!r}",
            hint="give each turn an id of its own",
        )
    return turn.id in known
