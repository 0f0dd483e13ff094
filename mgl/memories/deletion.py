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
from typing import Any, Protocol, TypeVar

from mgl.errors import InputError, NotThere
from mgl.memories.log import FORGOTTEN, Draft, EditT, StateT, Vocabulary
from mgl.memories.options import load_kind
from mgl.prompt import words_of
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.store.deletion import Gone, Redaction, Rewritten
from mgl.store.turns import ReplySources
from mgl.text.support import find_echoes
from mgl.types import Turn

SeenT = TypeVar("SeenT", contravariant=True)


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be forgotten: turns (their ids), topics, a topic with every later one that leads
    to it, and all that was said before a time. InputError where nothing is named."""

    turns: Collection[str]
    topics: Collection[str]
    branch_of: str | None
    before: datetime | None

    def __post_init__(self) -> None:
        if not (self.turns or self.topics) and self.branch_of is None and self.before is None:
            raise InputError("nothing to forget is named", hint="name turns, topics or a day")


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What a deletion takes: ``turns`` (their ids), and the nodes (their ids) that go with them.

    ``stale`` nodes keep other sources and get another description. That and the grouping that
    follows take ``calls`` model calls; at least so many if ``is_least``, where the replies decide
    what is asked next. ``spared`` nodes are frozen: they were meant and are kept. ``runs`` are the
    folders of the evaluation runs whose calls keep the text, ``adapters`` the names of those that
    were trained on the conversation and are removed. ``replies`` are those of the turns that go
    because they were made of others that do; ``answers`` are the questions whose stored answers go,
    of any memory of the conversation; ``echoes`` are turns that stay though they repeat what goes.
    """

    turns: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()
    calls: int = 0
    runs: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    echoes: tuple[str, ...] = ()
    is_least: bool = False


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


def delete(store: Store, conversation_id: str, what: Redaction) -> bool:
    """Delete from a conversation and from all that its memories made of it.

    False where the file still holds what went, because another process was reading (see
    ``Store.delete``). UsageError where a memory is of a kind that is not installed.
    """
    return store.delete(conversation_id, what, _rewrite)


def plan_deletion(
    kind: Any, step: int, log: Sequence[EditRecord], gone: Gone
) -> tuple[Rewritten, Any]:
    """Work out what a deletion makes of a log, and the state that it then leads to; writes nothing.

    ``kind`` is a class of ``mgl.memories.talk.TalkMemory``.
    """
    vocabulary = kind.vocabulary
    before = vocabulary.replay(log)
    redactor = kind.Redactor(gone, before)
    rows = [_redact_row(vocabulary, redactor, row, gone) for row in log]
    left = [edit for row in rows if (edit := vocabulary.edit(row)) is not None]
    after = vocabulary.replay(rows)
    draft = Draft(vocabulary, step, after)
    for edit in redactor.restore(left, after):
        draft.put(edit)
    lost = [row for row, new in zip(log, rows, strict=True) if new is not row]
    return Rewritten(rows, draft.rows, turns=_find_beside(lost, gone)), draft.state


def find_turn_numbers(
    turns: Sequence[Turn], ids: Collection[str], forgotten: Collection[int]
) -> dict[str, int]:
    """The numbers of turns by their ids. InputError for one that is not there, or was forgotten."""
    numbers = {turn.id: number for number, turn in enumerate(turns)}
    for identity in ids:
        if identity not in numbers:
            raise NotThere(
                f"the conversation has no turn {identity!r}",
                hint="`mgl export` lists the ids of its turns",
            )
        if numbers[identity] in forgotten:
            raise NotThere(f"turn {identity!r} is forgotten already", hint="leave it out")
    return {identity: numbers[identity] for identity in ids}


def find_derived(
    turns: Sequence[Turn],
    replies: Mapping[int, ReplySources],
    gone: Collection[int],
    forgotten: Collection[int],
) -> frozenset[int]:
    """The replies that were made of deleted turns, or of replies that were, by their numbers.

    Those are the ones that reply to such a turn or cite it; and, of those that were shown one, the
    ones with a word that nothing holds but what goes and such replies.
    """
    left = {number: each for number, each in replies.items() if number not in forgotten}
    lost = set(gone)
    while True:
        left = {number: each for number, each in left.items() if number not in lost}
        shown = {number for number, each in left.items() if not each.shown.isdisjoint(lost)}
        words = set().union(*(words_of(turns[number].text) for number in lost))
        words &= Gone("", Redaction(frozenset(lost | shown)), turns).words
        found = {
            number
            for number, each in left.items()
            if not each.made_of.isdisjoint(lost)
            or (number in shown and not words.isdisjoint(words_of(turns[number].text)))
        }
        if not found:
            return frozenset(lost.difference(gone))
        lost |= found


def find_repeating(
    turns: Sequence[Turn], gone: Collection[int], forgotten: Collection[int]
) -> list[int]:
    """The turns that stay though they repeat what goes, by their numbers."""
    kept = [n for n in range(len(turns)) if n not in gone and n not in forgotten]
    said = [turns[number].text for number in gone]
    return [kept[place] for place in find_echoes(said, [turns[number].text for number in kept])]


def find_before(turns: Sequence[Turn], time: datetime | None) -> set[int]:
    """The numbers of the turns that were said before a time, as clocks show them; one without a
    time was not."""
    if time is None:
        return set()
    clock = time.replace(tzinfo=None)
    said = ((number, turn.time) for number, turn in enumerate(turns))
    return {number for number, at in said if at is not None and at.replace(tzinfo=None) < clock}


def _rewrite(memory: MemoryRecord, step: int, log: Sequence[EditRecord], gone: Gone) -> Rewritten:
    kind = load_kind(memory.kind, memory.config.get("preset"))
    if hasattr(kind, "Redactor"):
        return plan_deletion(kind, step, log, gone)[0]
    lost = [row for row in log if gone.takes(row)]
    cut = min((row.chunk for row in lost), default=None)
    return Rewritten(log, cut=cut, turns=_find_beside(lost, gone))


def _find_beside(rows: Sequence[EditRecord], gone: Gone) -> frozenset[int]:
    """The turns of the rows that were made beside a deleted turn, not of it, and have its words."""
    found = map(frozenset, map(gone.find_turns, rows))
    return frozenset[int]().union(*(turns for turns in found if gone.turns.isdisjoint(turns)))


def _redact_row(
    vocabulary: Vocabulary[EditT, StateT],
    redactor: Redactor[EditT, StateT],
    row: EditRecord,
    gone: Gone,
) -> EditRecord:
    if row.reason == FORGOTTEN or not gone.takes(row):
        return row
    dropped = replace(row, payload={}, outcome="rejected", reason=FORGOTTEN)
    edit = vocabulary.edit(row)
    if edit is None:
        return dropped if row.outcome == "rejected" else row
    redacted = redactor.redact(edit)
    if redacted is None:
        return dropped
    return replace(row, payload=vocabulary.record(row.chunk, redacted).payload)
