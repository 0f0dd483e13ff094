"""The log of one memory, and the state that it makes.

    log = Log(store, record.id, conversation, VOCABULARY, observer)
    log.open(record)
    draft = log.draft()
    draft.put(Rename("e1", "Ann"))
    log.write(draft)

Edits are only ever appended, step by step; a step is one transaction, so a process that is killed
at any moment leaves whole steps. Several processes may write: each step has a number, and whoever
comes second reads the log again. A deletion rewrites rows, so the whole log is then read again.

Steps that say nothing of each other (the chunks of a document, the sessions of a conversation) may
be written in any order: the state is the fold of the steps in the order of their numbers.

With one step in many goes a snapshot of the state before it (``mgl.memories.snapshots``), so that
whoever opens the memory reads only the steps after that.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import attrgetter
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack

from mgl.errors import Conflict, StoreConflict, StoreDeleted
from mgl.llm.calls import note_shown
from mgl.memories.rows import TurnRows
from mgl.memories.snapshots import SnapshotCodec, is_due, pause_collector
from mgl.memories.table import Prefix
from mgl.observer import Observer
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.deletion import Fate
from mgl.store.records import EditOutcome, Snapshot
from mgl.store.turns import ReplySources, is_same
from mgl.types import Conversation, Source, Span, Turn

EditT = TypeVar("EditT")
StateT = TypeVar("StateT")

APPEND: Final = "append"
"""The op of a row that takes in a turn: ``{"turn": number}``."""

READING: Final = "reading"
"""The op of a row that says for which ``question`` a document was read, "" for none."""

FORGET: Final = "forget"
"""The op of a row that deletes turns, or parts of them: rows before it were rewritten."""

FORGOTTEN: Final = "forgotten"
"""The reason of a row that a deletion dropped: it is rejected, and holds nothing any more."""


@dataclass(frozen=True, slots=True)
class FailedReply:
    """A reply that could not be used: at which stage, and why. It changes no state."""

    what: str
    problem: str


class Origin(TypedDict, total=False):
    """Where an edit is from: the call that proposed it, its source, and how well a quote fits."""

    call_key: str | None
    span: Span | None
    score: float | None


@dataclass(frozen=True, eq=False)
class Vocabulary(Generic[EditT, StateT]):
    """The edits of one kind of memory by the name that rows have for them, and what they do.

    ``edits`` are their dataclasses; ``apply`` gives the state after one edit, and raises KeyError
    or ValueError for one that does not fit; ``empty`` is the state before the first. ``events``
    are rows that change no state (``FailedReply`` is one of them in every vocabulary). ``span``
    finds the source of an edit that is recorded without one; ``turns`` finds the turns that an edit
    is made of, with which it is deleted: none for one that holds no words, None for those of its
    span. ``columns`` names the fields of edits that are columns of their rows: some of ``step``,
    ``span`` and ``turns``.
    """

    edits: Mapping[str, type[Any]]
    apply: Callable[[StateT, EditT], StateT]
    empty: StateT
    events: Mapping[str, type[Any]] = field(default_factory=dict)
    span: Callable[[EditT], Span | None] | None = None
    turns: Callable[[StateT, EditT], Collection[int] | None] | None = None
    columns: Collection[str] = ()
    _adapters: dict[str, Any] = field(default_factory=dict, init=False)

    @cached_property
    def snapshots(self) -> SnapshotCodec[StateT]:
        """The codec of the state."""
        return SnapshotCodec(self.apply, self.empty)

    def record(
        self,
        step: int,
        edit: EditT | Any,
        outcome: EditOutcome = "applied",
        reason: str | None = None,
        turns: Collection[int] | None = None,
        **origin: Unpack[Origin],
    ) -> EditRecord:
        """Make an edit or event a row."""
        name = self._names[type(edit)]
        payload = self._adapter(name).dump_python(edit, mode="json", exclude=set(self.columns))
        if origin.get("span") is None:
            origin["span"] = self._find_span(edit)
        made_of = None if turns is None else tuple(sorted(turns))
        return EditRecord(step, name, payload, outcome, reason, turns=made_of, **origin)

    def find_turns(self, state: StateT, edit: EditT) -> Collection[int] | None:
        """Find the turns that an edit is made of, before it is applied; None where none are known.

        An edit that does not fit the state, and is to be rejected, may have none.
        """
        if self.turns is None:
            return getattr(edit, "turns", None) if "turns" in self.columns else None
        try:
            return self.turns(state, edit)
        except KeyError:
            return None

    def _find_span(self, edit: EditT | Any) -> Span | None:
        if self.span is None:
            return getattr(edit, "span", None) if "span" in self.columns else None
        return self.span(edit)

    def parse(self, row: EditRecord) -> EditT | Any | None:
        """The edit or event of a row; None where it was rejected, or is a bare mark."""
        if row.outcome == "rejected" or row.op not in self._types:
            return None
        held: dict[str, Any] = {"step": row.chunk, "span": row.span, "turns": row.turns}
        columns = {each: held[each] for each in self.columns if held[each] is not None}
        return self._adapter(row.op).validate_python({**row.payload, **columns})

    def edit(self, row: EditRecord) -> EditT | None:
        """The edit of a row; None where it was rejected, or changes no state."""
        return None if row.op in self._events else self.parse(row)

    def replay(self, rows: Iterable[EditRecord], state: StateT | None = None) -> StateT:
        """The state that rows, in the order of their steps, make of ``state``, by default of the
        empty one.

        Where some were dropped by a deletion, those that no longer fit without them are skipped:
        the step of the deletion says what they are to be.
        """
        rows = sorted(rows, key=attrgetter("chunk"))
        start = self.empty if state is None else state
        apply = (
            self._apply_if_fitting if any(row.reason == FORGOTTEN for row in rows) else self.apply
        )
        edits = (edit for row in rows if (edit := self.edit(row)) is not None)
        return reduce(apply, edits, start)

    def _apply_if_fitting(self, state: StateT, edit: EditT) -> StateT:
        try:
            return self.apply(state, edit)
        except (KeyError, ValueError):
            return state

    @cached_property
    def _events(self) -> dict[str, type[Any]]:
        return {"reply": FailedReply, **self.events}

    @cached_property
    def _types(self) -> dict[str, type[Any]]:
        return {**self.edits, **self._events}

    @cached_property
    def _names(self) -> dict[type[Any], str]:
        return {kind: name for name, kind in self._types.items()}

    def _adapter(self, name: str) -> Any:
        """The adapter of a kind of row, made when the first is written or read."""
        if name not in self._adapters:
            from pydantic import TypeAdapter

            self._adapters[name] = TypeAdapter(self._types[name])
        return self._adapters[name]


def find_read_again(rows: Iterable[EditRecord]) -> dict[int, int]:
    """Map each step that read a chunk again to that chunk."""
    return {row.chunk: row.payload["chunk"] for row in rows if row.op == "again"}


def count_failures(rows: Sequence[EditRecord]) -> dict[int, int]:
    """Count the unusable replies of each chunk that has not been read since, in reading order."""
    steps = find_read_again(rows)
    failed = Counter(row.chunk for row in rows if row.op == "reply")
    read = {chunk for step, chunk in steps.items() if step not in failed}
    counts: Counter[int] = Counter()
    for step, count in failed.items():
        counts[steps.get(step, step)] += count
    return {chunk: counts[chunk] for chunk in sorted(counts) if chunk not in read}


class Draft(Generic[EditT, StateT]):
    """The rows of a step that is being made, and the ``state`` that they lead to.

    Edits are judged one by one: what cannot be applied is a row that says why, and no more.
    """

    def __init__(self, vocabulary: Vocabulary[EditT, StateT], step: int, state: StateT) -> None:
        self.rows: list[EditRecord] = []
        self.state = state
        self.step = step
        self._vocabulary = vocabulary

    def put(
        self,
        edit: EditT,
        *,
        rejected: str | None = None,
        repaired: str | None = None,
        turns: Collection[int] | None = None,
        **origin: Unpack[Origin],
    ) -> bool:
        """Apply an edit, unless it is ``rejected``, and return whether it was applied.

        ``rejected`` and ``repaired`` are reasons. ``turns`` are those that it is made of, by
        default what the vocabulary finds.
        """
        if turns is None:
            turns = self._vocabulary.find_turns(self.state, edit)
        if not rejected:
            try:
                self.state = self._vocabulary.apply(self.state, edit)
            except (KeyError, ValueError) as error:
                rejected = str(error)
        outcome: EditOutcome = "rejected" if rejected else "repaired" if repaired else "applied"
        reason = rejected or repaired
        row = self._vocabulary.record(self.step, edit, outcome, reason, turns, **origin)
        self.rows.append(row)
        return not rejected

    def reject(
        self,
        op: str,
        payload: Mapping[str, Any],
        reason: str,
        *,
        turns: Iterable[int] | None = None,
        **origin: Unpack[Origin],
    ) -> None:
        """Add a proposal that never became an edit, as it was made."""
        made_of = None if turns is None else tuple(turns)
        row = EditRecord(self.step, op, payload, "rejected", reason, turns=made_of, **origin)
        self.rows.append(row)

    def mark(self, event: Any, *, call_key: str | None = None) -> None:
        """Add an event, which changes no state and holds no words."""
        self.rows.append(self._vocabulary.record(self.step, event, call_key=call_key, turns=()))

    def fail(self, what: str, problem: str, *, reason: str = "reply_invalid") -> None:
        """Add that a reply, or a part of one, could not be used."""
        row = self._vocabulary.record(self.step, FailedReply(what, problem), "rejected", reason)
        self.rows.append(row)


def _conflict_of(turn: Turn) -> Conflict:
    return Conflict(
        f"the conversation has another turn with the id {turn.id!r}",
        hint="give each turn an id of its own",
    )


class Log(Generic[EditT, StateT]):
    """``state`` and the ``step`` that comes next, as of the last time that it caught up.

    Over a conversation ``turns`` are its turns as the store has them, ``fates`` says which of them
    were deleted or masked, and ``deletions`` grows with each deletion.

    One thread writes; others may catch up meanwhile.
    """

    def __init__(
        self,
        store: Store,
        identity: str,
        source: Source,
        vocabulary: Vocabulary[EditT, StateT],
        observer: Observer,
    ) -> None:
        self.identity = identity
        self.turns = TurnRows()
        self.fates: dict[int, Fate] = {}
        self.state: StateT = vocabulary.empty
        self.step = 0
        self.deletions = 0
        self._store = store
        self._source = source
        self._vocabulary = vocabulary
        self._observer = observer
        self._is_open = False
        self._incarnation: int | None = None
        self._version = vocabulary.snapshots.version  # now: an upgrade may replace the files later
        self._last_snapshot = 0
        self._folded = 0
        self._since = 0
        self._changes: tuple[int, int] | None = None
        self._catching_up = threading.Lock()

    def open(self, record: Callable[[], MemoryRecord]) -> None:
        """Register source and memory where they are new, and catch up."""
        if not self._is_open:
            if isinstance(self._source, Conversation):
                self._store.put_conversation(self._source)
            else:
                self._store.put_document(self._source)
            if self._store.steps(self.identity) == 0:
                self._store.put_memory(record())
            self._incarnation = self._store.incarnation(self.identity)
            self._is_open = True
        self.catch_up()

    def catch_up(self) -> None:
        """Apply what the log has and the state lacks; read the turns that are new.

        StoreDeleted where the memory was deleted, even if another was made in its place.
        """
        with self._catching_up:
            changes = self._store.count_changes()  # before they are read
            if changes == self._changes:
                return
            if self._is_open and self._store.incarnation(self.identity) != self._incarnation:
                raise StoreDeleted
            with pause_collector():
                self._read_edits()
                if isinstance(self._source, Conversation):
                    self._read_turns()
            self._changes = changes

    def _read_edits(self) -> None:
        since = self._store.count_deletions(self._source.id)  # before they are read
        if since != self._since:
            self._since = since
            self._begin_anew()
        elif self._has_gaps and self._store.count_done(self.identity) > self._folded:
            self._begin_anew()  # what came late belongs before what was read
        if self.step == 0:
            self._read_snapshot()
        first, steps = self.step, self._store.steps(self.identity)
        if steps > first:
            done = self._store.count_done(self.identity, since=first)
            rows = self._store.edits(self.identity, since=first)
            if any(row.op == FORGET for row in rows):
                self._drop_turns()
                rows, self.state = self.rows, self._vocabulary.empty
            self.state = self._vocabulary.replay(rows, self.state)
            self.step = max([steps, *(row.chunk + 1 for row in rows)])
            self._folded += min(done, self.step - first)  # another may be writing

    @property
    def _has_gaps(self) -> bool:
        """Whether a step is missing before the last."""
        return self._folded < self.step

    def _begin_anew(self) -> None:
        self.state, self.step, self._folded = self._vocabulary.empty, 0, 0
        self._last_snapshot = 0

    def _read_snapshot(self) -> None:
        kept = self._store.find_snapshot(self.identity)
        state = None if kept is None else self._vocabulary.snapshots.read(kept)
        if kept is not None and state is not None:
            self.state, self.step, self._folded = state, kept.step, kept.step
            self._last_snapshot = kept.step

    def _take_snapshot(self) -> Snapshot | None:
        """Take a snapshot of the state, if one is due."""
        with self._catching_up:
            step, state, since = self.step, self.state, self._since
        if self._has_gaps or not is_due(step, self._last_snapshot):
            return None
        self._last_snapshot = step
        body = self._vocabulary.snapshots.dump(state)
        return None if body is None else Snapshot(step, since, self._version, body)

    def _read_turns(self) -> None:
        if self._is_open:  # it may have been renamed
            self._source = replace(self._source, name=self._store.document_name(self._source.id))
        deletions = self._store.count_deletions(self._source.id)  # before they are read
        if deletions != self.deletions:
            self._drop_turns()
            self.deletions = deletions
        since = len(self.turns)
        self.turns.extend(self._store.read_turns(self._source.id, since=since))
        if len(self.turns) > since:
            self.fates.update(self._store.find_fates(self._source.id, since=since))

    def _drop_turns(self) -> None:
        """Begin anew: sources that were given out keep the old ones."""
        self.turns = TurnRows()

    @property
    def rows(self) -> list[EditRecord]:
        """All rows, in order."""
        return self._store.edits(self.identity)

    @property
    def source(self) -> Source:
        """The source as the store has it."""
        if isinstance(self._source, Conversation):
            return replace(
                self._source,
                turns=self.turns.freeze(),
                ends=Prefix(self.turns.ends),
                firsts=Prefix(self.turns.firsts),
            )
        return self._source

    @property
    def forgotten(self) -> frozenset[int]:
        """The numbers of the turns that were deleted, whichever memory was asked to."""
        return frozenset(number for number, fate in self.fates.items() if fate == "forgotten")

    def note_shown(self, turns: Iterable[int] | None = None) -> AbstractContextManager[None]:
        """State which turns the calls within show, by default all that there are.

        Their texts are those of the last time that the log caught up: where one of them is deleted
        before a call is recorded, the call is recorded without its words.
        """
        if not isinstance(self._source, Conversation):
            return nullcontext()
        shown = None if turns is None else frozenset(turns)
        return note_shown(self._source.id, shown, since=self.deletions)

    def number(self, turn_id: str) -> int:
        """The number of the turn with this id; KeyError if there is none."""
        if (number := self.turns.find(turn_id)) is None:
            raise KeyError(turn_id)
        return number

    def find_turn(self, identity: str) -> Turn | None:
        """Find the turn with this id."""
        number = self.turns.find(identity)
        return None if number is None else self.turns[number]

    def has(self, turn: Turn) -> bool:
        """Whether the turn is there; InputError where another has its id."""
        number = self.turns.find(turn.id)
        if number is None:
            return False
        if not is_same(self.turns[number], turn) and not (
            number in self.fates and self._store.was_deleted_as(self._source.id, number, turn)
        ):
            raise _conflict_of(turn)
        return True

    def find_new(self, turns: Sequence[Turn]) -> list[Turn]:
        """Those of some turns that are not there; InputError where another has an id of one."""
        fresh: dict[str, Turn] = {}
        for turn in turns:
            if not self.has(turn) and not is_same(fresh.setdefault(turn.id, turn), turn):
                raise _conflict_of(turn)
        return [*fresh.values()]

    def draft(self, step: int | None = None) -> Draft[EditT, StateT]:
        """Begin the next step, or the one with this number."""
        return Draft(self._vocabulary, self.step if step is None else step, self.state)

    def write(self, draft: Draft[EditT, StateT]) -> bool:
        """Append a step and catch up.

        False where another process wrote that step first, or something was deleted since the draft
        was begun: then that is read instead, and the draft is void.
        """
        try:
            self.add(draft)
        except StoreConflict:
            self._observer.note("another process writes to this memory: reading its log")
            self.catch_up()
            return False
        self.catch_up()
        return True

    def add(self, draft: Draft[EditT, StateT], *, since: int | None = None) -> None:
        """Append a step on which no other waits, without catching up.

        StoreConflict where the step was written before, or something was deleted from the source
        after the deletion ``since``.
        """
        length = self.turns.ends[-1] if self.turns else None
        kept = self._take_snapshot()
        self._store.append_edits(
            self.identity, draft.step, draft.rows, since=since, length=length, snapshot=kept
        )

    def append_turns(self, turns: Sequence[Turn]) -> bool:
        """Append turns to the conversation and their rows to the log, in one transaction.

        False as in ``write``.
        """
        first = len(self.turns)
        rows = [self._row_of(first + place, self.step + place) for place in range(len(turns))]
        try:
            kept = self._take_snapshot()
            self._store.append_turns(self.identity, first, turns, rows, kept)
        except StoreConflict:
            return False
        finally:
            self.catch_up()
        return True

    def append_reply(self, turn: Turn, sources: ReplySources, *, since: int) -> bool | None:
        """Append a reply as ``append_turns`` does, with the turns that it was made of.

        None, and nothing written, where one that it was shown was deleted after ``since``.
        """
        number = len(self.turns)
        row = self._row_of(number, self.step)
        try:
            kept = self._store.append_reply(self.identity, number, turn, row, sources, since=since)
        except StoreConflict:
            return False
        finally:
            self.catch_up()
        return True if kept else None

    def _row_of(self, turn: int, step: int) -> EditRecord:
        return EditRecord(step, APPEND, {"turn": turn}, "applied", turns=())

    def change(self, make: Callable[[StateT], EditT | None]) -> None:
        """Write the edit that ``make`` finds for the state, if it finds one."""
        while (edit := make(self.state)) is not None:
            draft = self.draft()
            draft.put(edit)
            if self.write(draft):
                return
