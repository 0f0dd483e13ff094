"""Deletion from a conversation, for all memories of it, whichever of them is asked.

    delete(store, talk.id, Redaction(frozenset({3})))                       # doctest: +SKIP

What a row is made of was recorded when it was written (``EditRecord.turns``); what its kind says
besides is small (``Redactor``): how an edit reads without the words of what went, and which edits
make the rest of the log lead to the state that is left. A kind that says nothing has its log cut
where it first lost something: its next build does the rest again, and replays the calls that are
left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from mgl import registry
from mgl.errors import InputError
from mgl.memories.log import FORGOTTEN, Draft, Vocabulary
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.deletion import Gone, Redaction, Rewritten
from mgl.text.groups import format_span
from mgl.types import Turn

__all__ = [
    "Forgets",
    "Forgotten",
    "Plan",
    "Redactor",
    "delete",
    "find_turn_numbers",
    "is_before",
    "plan_deletion",
]

EditT = TypeVar("EditT")
StateT = TypeVar("StateT")
SeenT = TypeVar("SeenT", contravariant=True)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a deletion takes: ``turns`` (their ids), and the nodes (their ids) that go with them.

    ``stale`` nodes keep other sources and get another description, which takes ``calls`` model
    calls. ``spared`` nodes are frozen: they were meant and are kept. ``runs`` are the folders of
    the evaluation runs whose calls keep the text.
    """

    turns: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    calls: int = 0
    runs: tuple[str, ...] = ()


class Redactor(Protocol[EditT, SeenT]):
    """How one log loses its words; made for one memory and one deletion."""

    def redact(self, edit: EditT) -> EditT | None:
        """The edit without words of what went; the same where it has none, None to drop it."""
        ...

    def restore(self, left: Sequence[EditT], after: SeenT) -> Sequence[EditT]:
        """The edits of the step that says what went, in numbers alone.

        ``left`` are the edits that the log still has, ``after`` is the state that they lead to.
        """
        ...

    def texts(self, state: SeenT, turns: Sequence[Turn]) -> set[str]:
        """The texts that a memory in this state may have embedded."""
        ...


@runtime_checkable
class Forgets(Protocol):
    """A kind of memory whose log goes on after a deletion."""

    @property
    def vocabulary(self) -> Vocabulary[Any, Any]: ...

    def redactor(
        self, config: Mapping[str, Any], gone: Gone, before: Any, /
    ) -> Redactor[Any, Any]: ...


@dataclass(frozen=True, slots=True)
class Plan(Generic[StateT]):
    """A log as a deletion leaves it, the states before and after, and the texts that went."""

    rows: Sequence[EditRecord]
    step: Sequence[EditRecord]
    before: StateT
    after: StateT
    texts: Collection[str]


def delete(store: Store, conversation_id: str, what: Redaction) -> bool:
    """Delete from a conversation and from all that its memories made of it.

    False where the file still holds what went, because another process was reading (see
    ``Store.delete``). UsageError where a memory is of a kind that is not installed.
    """
    return store.delete(conversation_id, what, _rewrite)


def plan_deletion(
    kind: Forgets, config: Mapping[str, Any], step: int, log: Sequence[EditRecord], gone: Gone
) -> Plan[Any]:
    """Work out what a deletion makes of a log, without writing anything."""
    vocabulary = kind.vocabulary
    before = vocabulary.replay(log)
    redactor = kind.redactor(config, gone, before)
    rows = [_redact_row(vocabulary, redactor, row, gone) for row in log]
    left = [edit for row in rows if (edit := vocabulary.edit(row)) is not None]
    after = vocabulary.replay(rows)
    draft = Draft(vocabulary, step, after)
    for edit in redactor.restore(left, after):
        draft.put(edit)
    texts = redactor.texts(before, gone.before) - redactor.texts(draft.state, gone.after)
    return Plan(rows, draft.rows, before, draft.state, texts)


def find_turn_numbers(
    turns: Sequence[Turn], ids: Collection[str], forgotten: Collection[int]
) -> dict[str, int]:
    """The numbers of turns by their ids. InputError for one that is not there, or was forgotten."""
    numbers = {turn.id: number for number, turn in enumerate(turns)}
    for identity in ids:
        if identity not in numbers:
            raise InputError(
                f"the conversation has no turn {identity!r}", hint="look at the ids in its export"
            )
        if numbers[identity] in forgotten:
            raise InputError(f"turn {identity!r} is forgotten already", hint="leave it out")
    return {identity: numbers[identity] for identity in ids}


def is_before(turn: Turn, time: datetime) -> bool:
    """Whether a turn was said before a time, as clocks show them; one without a time was not."""
    return turn.time is not None and turn.time.replace(tzinfo=None) < time.replace(tzinfo=None)


def _rewrite(memory: MemoryRecord, step: int, log: Sequence[EditRecord], gone: Gone) -> Rewritten:
    kind = registry.load("memory", memory.kind)
    if isinstance(kind, Forgets):
        plan = plan_deletion(kind, memory.config, step, log, gone)
        return Rewritten(plan.rows, plan.step, texts=plan.texts)
    lost = [row for row in log if gone.takes(row) or gone.is_told_in([row.payload, row.reason])]
    source = replace(gone.source, turns=tuple(gone.before))
    spans = [row.span for row in log if row.span is not None and gone.touches(row)]
    texts = {format_span(source, span) for span in spans}
    return Rewritten(log, cut=min((row.chunk for row in lost), default=None), texts=texts)


def _redact_row(
    vocabulary: Vocabulary[EditT, StateT],
    redactor: Redactor[EditT, StateT],
    row: EditRecord,
    gone: Gone,
) -> EditRecord:
    if row.reason == FORGOTTEN:
        return row
    if not gone.takes(row) and not gone.is_told_in([row.payload, row.reason]):
        return row
    edit = vocabulary.edit(row)
    if edit is None:
        dropped = row.outcome == "rejected"
    else:
        redacted = redactor.redact(edit)
        if redacted is not None:
            if redacted == edit:
                return row
            return replace(row, payload=vocabulary.record(row.chunk, redacted).payload)
        dropped = True
    return replace(row, payload={}, outcome="rejected", reason=FORGOTTEN) if dropped else row
