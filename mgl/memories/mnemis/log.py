"""The log of one memory, and the state that it makes.

Several processes may write: each step has a number, and whoever comes second reads the log again.
A deletion rewrites what is there, so that the whole log is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial

from mgl.errors import InputError, StoreConflict
from mgl.memories.deletion import delete, minding
from mgl.memories.mnemis.edits import EVENTS, resolved
from mgl.memories.mnemis.places import Places
from mgl.memories.mnemis.state import EMPTY, State, replay
from mgl.observer import Observer
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.redaction import Redaction
from mgl.store.turns import is_same
from mgl.types import Conversation, Source, Turn

__all__ = ["Log"]


class Log:
    """``state`` and the ``step`` that comes next, as of the last time that it caught up; ``places``
    are those of the source's terms, as far as they were read."""

    def __init__(self, store: Store, identity: str, source: Source, observer: Observer) -> None:
        self._store = store
        self._id = identity
        self._source = source
        self._observer = observer
        self.places = Places()
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
            rows, state = self._store.edits(self._id, since=self.step), self.state
            if any(row.op == "forget" for row in rows):
                rows, state = self._store.edits(self._id), EMPTY
            edits = (resolved(row) for row in rows)
            self.state = replay((edit for edit in edits if edit is not None), state)
            self.step = rows[-1].chunk + 1

    @property
    def source(self) -> Source:
        """The source as the store has it now."""
        if isinstance(self._source, Conversation):
            return replace(self._source, turns=tuple(self._store.turns(self._source.id)))
        return self._source

    @property
    def forgotten(self) -> frozenset[int]:
        """The numbers of the turns that were deleted, by whichever memory of the conversation."""
        fates = self._store.redacted(self._source.id)
        return frozenset(number for number, fate in fates.items() if fate == "forgotten")

    @property
    def log(self) -> list[EditRecord]:
        """All rows, in order."""
        return self._store.edits(self._id)

    @property
    def rows(self) -> list[EditRecord]:
        """The rows of edits, in order."""
        return [row for row in self.log if row.op not in EVENTS]

    @property
    def categorised(self) -> int | None:
        """How many entities there were when the hierarchy was last seen to, 0 before the first
        time; None where there was a deletion since."""
        for row in reversed(self.log):
            if row.op == "hierarchy":
                entities: int = row.payload["entities"]
                return entities
            if row.op == "forget":
                return None
        return 0

    def write(self, rows: Sequence[EditRecord]) -> bool:
        """Append a step and catch up; False where another process wrote it first, or something was
        deleted since its rows were begun: then that is taken instead."""
        try:
            self._store.append_edits(self._id, rows[0].chunk, rows)
        except StoreConflict:
            self._observer.note("another process writes to this memory: reading its log")
            self.catch_up()
            return False
        self.catch_up()
        return True

    def add(self, turn: Turn, turns: Sequence[Turn]) -> None:
        """Append a turn to the conversation, behind those that it has."""
        row = EditRecord(self.step, "turn", {"number": len(turns)}, "applied")
        with suppress(StoreConflict):
            self._store.append_turn(self._source.id, len(turns), turn, self._id, row)
        self.catch_up()

    def holds(self, turns: Sequence[Turn], turn: Turn) -> bool:
        """Whether a turn is among some; InputError where another has its id."""
        numbers = {own.id: number for number, own in enumerate(turns)}
        number = numbers.get(turn.id)
        if number is None:
            return False
        if not is_same(turns[number], turn) and number not in self._store.redacted(self._source.id):
            raise InputError(
                f"the conversation has another turn with the id {turn.id!r}",
                hint="give each turn an id of its own",
            )
        return True

    def redact(self, what: Redaction) -> None:
        """Delete from the conversation, for all its memories."""
        wiped = delete(self._store, self._source.id, what)
        self.catch_up()
        if not wiped:
            self._observer.note(
                "another process reads the store: what was deleted leaves its file when that ends"
            )

    def minding(self, shown: Source) -> AbstractContextManager[None]:
        """Where turns that a model is shown are deleted meanwhile, its calls are cleaned, too."""
        if not isinstance(shown, Conversation):
            return nullcontext()
        now = partial(self._store.turns, self._source.id)
        return minding(self._store, self._source.id, shown.turns, now)
