"""The turns and the state of one memory, as the store has them: every change is a step of its log.

    ledger = Ledger(store, talk, lambda: record, observer)
    ledger.open()
    ledger.write([Append(0)])

Several processes may write: each step has a number, and whoever comes second reads the log again.
Deletion by one is a step for all memories of the conversation, so each hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property

from mgl.errors import InputError, StoreConflict
from mgl.memories.deletion import delete, minding
from mgl.memories.gam.edits import record, resolved
from mgl.memories.gam.state import EMPTY, Append, Edit, Forget, Mask, State, apply
from mgl.observer import Observer
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.redaction import Fate, Redaction
from mgl.store.turns import is_same
from mgl.types import Conversation, Turn

__all__ = ["Ledger"]


class Ledger:
    """``turns``, the ``state`` that the log makes and the ``step`` that comes next, as of the last
    time that it caught up. ``describe`` gives the memory's record."""

    def __init__(
        self,
        store: Store,
        conversation: Conversation,
        describe: Callable[[], MemoryRecord],
        observer: Observer,
    ) -> None:
        self._store = store
        self._conversation = conversation
        self._describe = describe
        self._observer = observer
        self._numbers: dict[str, int] = {}
        self._redacted: dict[int, Fate] = {}
        self.turns: list[Turn] = []
        self.state: State = EMPTY
        self.step = 0

    @cached_property
    def record(self) -> MemoryRecord:
        return self._describe()

    @property
    def log(self) -> list[EditRecord]:
        """All rows of the log."""
        return self._store.edits(self.record.id)

    def open(self) -> None:
        """Register the conversation and the memory where they are new, and catch up."""
        if self.step == 0:
            self._store.put_conversation(self._conversation)
            if self._store.steps(self.record.id) == 0:
                self._store.put_memory(self.record)
            self.turns.clear()
        self.catch_up()

    def catch_up(self) -> None:
        """Apply what is in the log and not in the state: by another process, or by the last one."""
        if self._store.steps(self.record.id) > self.step:
            rows = self._store.edits(self.record.id, since=self.step)
            edits = [resolved(row) for row in rows]
            for edit in edits:
                if edit is not None:
                    self.state = apply(self.state, edit)
            self.step = rows[-1].chunk + 1
            if any(isinstance(edit, Forget | Mask) for edit in edits):
                self.turns.clear()
        since = len(self.turns)
        for turn in self._store.turns(self._conversation.id, since=since):
            self._numbers[turn.id] = len(self.turns)
            self.turns.append(turn)
        if len(self.turns) > since:
            self._redacted.update(self._store.redacted(self._conversation.id, since=since))

    def number(self, turn_id: str) -> int:
        """The number of the turn with this id; KeyError if there is none."""
        return self._numbers[turn_id]

    def holds(self, turn: Turn) -> bool:
        """Whether the turn is there; InputError where another has its id."""
        number = self._numbers.get(turn.id)
        if number is None:
            return False
        if not is_same(self.turns[number], turn) and number not in self._redacted:
            raise InputError(
                f"the conversation has another turn with the id {turn.id!r}",
                hint="give each turn an id of its own",
            )
        return True

    def write(self, rows: Sequence[EditRecord]) -> bool:
        """Append the rows of one step and catch up. False where it was written before, by another
        process or after its rows were begun: then that is taken instead."""
        try:
            self._store.append_edits(self.record.id, rows[0].chunk, rows)
        except StoreConflict:
            self._observer.note("another process writes to this memory: reading its log")
            self.catch_up()
            return False
        self.catch_up()
        return True

    def add(self, turn: Turn) -> bool:
        """Append a turn to the conversation and to the buffer, in one transaction, and catch up.
        False as ``write``."""
        number = len(self.turns)
        edit = record(self.step, Append(number))
        try:
            self._store.append_turn(self._conversation.id, number, turn, self.record.id, edit)
        except StoreConflict:
            self.catch_up()
            return False
        self.catch_up()
        return True

    def take_in(self) -> bool:
        """Append the next turn that the conversation has and the log lacks. One that was deleted
        before is forgotten at once. False as ``write``."""
        number = self.state.turns
        edits: list[Edit] = [Append(number)]
        if self._redacted.get(number) == "forgotten" and number not in self.state.forgotten:
            edits.append(Forget((number,)))
        return self.write([record(self.step, edit) for edit in edits])

    def change(self, make: Callable[[State], Edit | None]) -> None:
        """Write the edit that ``make`` finds for the state, if it finds one."""
        while (edit := make(self.state)) is not None:
            if self.write([record(self.step, edit)]):
                return

    def redact(self, what: Redaction) -> None:
        """Delete from the conversation, for all its memories."""
        wiped = delete(self._store, self._conversation.id, what)
        self.catch_up()
        if not wiped:
            self._observer.note(
                "another process reads the store: what was deleted leaves its file when that ends"
            )

    def minding(self) -> AbstractContextManager[None]:
        """Where turns are deleted while a model is asked about them, the calls are cleaned, too."""
        return minding(self._store, self._conversation.id, self.turns, self._now)

    def _now(self) -> Sequence[Turn]:
        self.catch_up()
        return self.turns
