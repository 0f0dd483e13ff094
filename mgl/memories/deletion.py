"""Deletion from a conversation, for all memories of it, whichever of them is asked.

    delete(store, talk.id, Redaction(frozenset({3})))                       # doctest: +SKIP

What a memory keeps of turns only its own kind knows: a kind whose log, vectors or calls tell of
them is a ``Forgets``, which rewrites the log and says what else was made of them. A kind that is
none keeps its log as it is, and must not have written there what turns say. What the store keeps
for all of them (turns, model calls, vectors, answers) is cleaned in any case
(``mgl.store.redaction``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from mgl import registry
from mgl.errors import InputError
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.redaction import Redaction, Treated
from mgl.store.scrubbing import Derived
from mgl.types import Turn

__all__ = ["Forgets", "Forgotten", "delete", "is_before", "minding", "numbered"]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a deletion takes: ``turns`` (their ids), and the nodes (their ids) that go with them.

    ``stale`` nodes keep other sources and get another description. ``spared`` nodes are frozen:
    they were meant and are kept.
    """

    turns: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


@runtime_checkable
class Forgets(Protocol):
    """A kind of memory whose log tells of turns. ``derived`` names the stages of its model calls
    whose replies later calls quote, each with the fields that they quote."""

    @property
    def derived(self) -> Derived: ...

    def shown(self, turns: Sequence[Turn], numbers: Collection[int], /) -> Iterable[str]:
        """How its prompts show some turns, other than by their lines."""
        ...

    def treated(
        self,
        what: Redaction,
        memory: MemoryRecord,
        step: int,
        log: Sequence[EditRecord],
        turns: Sequence[Turn],
        /,
    ) -> Treated:
        """What becomes of the log of one memory of this kind; ``turns`` are as they were, ``step``
        is the memory's next. A kind that goes on as turns come writes a step in any case, so that
        a process that had not heard of the deletion cannot write what it was about to."""
        ...


def delete(store: Store, conversation_id: str, what: Redaction) -> bool:
    """Delete from a conversation and from all that its memories made of it.

    False where the file still holds what went, because another process was reading (see
    ``Store.redact``). UsageError where a memory is of a kind that is not installed: what it holds
    cannot be told.
    """

    def treat(
        memory: MemoryRecord, step: int, log: Sequence[EditRecord], turns: Sequence[Turn]
    ) -> Treated:
        kind = registry.load("memory", memory.kind)
        if isinstance(kind, Forgets):
            return kind.treated(what, memory, step, log, turns)
        return Treated(log)

    derived = _derived(_kinds(store, conversation_id))
    return store.redact(conversation_id, what, treat, derived=derived)


@contextmanager
def minding(
    store: Store, conversation_id: str, known: Sequence[Turn], now: Callable[[], Sequence[Turn]]
) -> Iterator[None]:
    """Where turns are deleted while a model is asked about them, the calls are cleaned, too.

    ``known`` are the turns as they are about to be shown, ``now`` gives them as they are at the
    end. A process that is killed in between leaves the calls that it had made by then.
    """
    before = list(known)
    try:
        yield
    finally:
        pairs = enumerate(zip(before, now(), strict=False))
        gone = [number for number, (old, new) in pairs if old is not new and old != new]
        if gone:
            kinds = _kinds(store, conversation_id)
            shown = {text for kind in kinds for text in kind.shown(before, gone)}
            lost = [before[number] for number in gone]
            store.scrub(conversation_id, lost, shown=shown, derived=_derived(kinds))


def numbered(
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


def _derived(kinds: Iterable[Forgets]) -> Derived:
    """The stages whose replies are quoted, of several kinds."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for kind in kinds:
        for stage, fields in kind.derived.items():
            found[stage].update(fields)
    return found


def _kinds(store: Store, conversation_id: str) -> list[Forgets]:
    """The kinds of memory that remember a conversation in a log."""
    names = {each.kind for each in store.memories() if each.document_id == conversation_id}
    kinds: list[Any] = [registry.load("memory", name) for name in sorted(names)]
    return [kind for kind in kinds if isinstance(kind, Forgets)]
