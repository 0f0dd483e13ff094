"""Deletion from a conversation: what went is overwritten wherever the store has it.

    store.redact(talk.id, Redaction(forgotten=frozenset({3})), treat)       # doctest: +SKIP

One transaction overwrites the turns' text by as many ``·`` (so that every other turn keeps its
span), lets ``treat`` rewrite the log of each memory of the conversation, and has
``mgl.store.scrubbing`` clean what was asked of models and kept of it. Called within the store's
transactions.

It does not know what edits mean. What has left the store (an export, a copy of the file) is out
of its reach.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from mgl.prompt import one_line
from mgl.store import rows, turns
from mgl.store.records import EditRecord, MemoryRecord
from mgl.store.scrubbing import Derived, Gone, scrub
from mgl.store.traces import TELLING
from mgl.types import Turn

__all__ = [
    "MASK",
    "Fate",
    "Ranges",
    "Redaction",
    "Treat",
    "Treated",
    "masked",
    "redact",
    "redacted",
    "scrub_turns",
]

MASK: Final = "·"
Ranges = Sequence[tuple[int, int]]
"""Character ranges of a text, ends exclusive."""
Fate = Literal["forgotten", "masked"]
_FATES: Final[Mapping[int, Fate]] = {1: "forgotten", 2: "masked"}
_TELLING_PIECE: Final = 4
"""A masked piece of so many characters (a number) is looked for without its speaker; a whole turn
of fewer than ``TELLING`` ("Thanks!") is said too often."""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Turns by their number: those that go, and those of which some characters do."""

    forgotten: frozenset[int] = frozenset()
    masked: Mapping[int, Ranges] = field(default_factory=dict)

    @property
    def turns(self) -> frozenset[int]:
        """All turns that lose something."""
        return self.forgotten | self.masked.keys()


@dataclass(frozen=True, slots=True)
class Treated:
    """What becomes of a memory's log: its rows, one for one, without what went (payload, outcome
    and reason may change); the rows of the step that says so (none where the memory keeps no log);
    the texts that it had ``made``, which go wherever they are; those that it had ``embedded``,
    whose vectors go; single ``words`` of these, levelled by ``casefold``, that nothing else has;
    and the ``keys`` of calls that go though their rows stay as they are."""

    log: Sequence[EditRecord]
    step: Sequence[EditRecord] = ()
    made: Collection[str] = ()
    embedded: Collection[str] = ()
    words: Collection[str] = ()
    keys: Collection[str] = ()


Treat = Callable[[MemoryRecord, int, Sequence[EditRecord], Sequence[Turn]], Treated]
"""(memory, its next step, its log, the turns as they were) → what becomes of the log."""


def masked(text: str, ranges: Ranges) -> str:
    """The text with some characters overwritten; it keeps its length."""
    for start, end in ranges:
        text = text[:start] + MASK * len(text[start:end]) + text[end:]
    return text


def redacted(
    connection: sqlite3.Connection, document_id: str, *, since: int = 0
) -> dict[int, Fate]:
    """The turns of a conversation that were deleted from, from the number ``since`` on."""
    found = connection.execute(
        "SELECT number, redacted FROM turns WHERE document_id = ? AND number >= ? AND redacted > 0",
        (document_id, since),
    )
    return {number: _FATES[fate] for number, fate in found}


def redact(
    connection: sqlite3.Connection,
    document_id: str,
    what: Redaction,
    treat: Treat,
    derived: Derived = MappingProxyType({}),
) -> list[tuple[str, int, Sequence[EditRecord]]]:
    """Delete from a conversation and from all that its memories made of it.

    ``derived`` as ``scrub`` has it. Gives the steps that are to be appended: memory, step, rows.
    """
    before = turns.turns(connection, document_id)
    traces = _overwrite(connection, document_id, before, what)
    texts = {text for number in what.turns for text in _texts(before[number])}
    memories = _memories(connection, document_id)
    steps: list[tuple[str, int, Sequence[EditRecord]]] = []
    logs: list[tuple[int, EditRecord]] = []
    keys: set[str] = set()
    words: set[str] = set()
    for memory in memories:
        numbers, log, step = _log(connection, memory.id)
        treated = treat(memory, step, log, before)
        traces.update(treated.made)
        texts.update(treated.made, treated.embedded)
        words.update(treated.words)
        keys.update(treated.keys)
        logs += zip(numbers, treated.log, strict=True)
        keys.update(
            old.call_key
            for old, new in zip(log, treated.log, strict=True)
            if new != old and old.call_key is not None
        )
        if treated.step:
            steps.append((memory.id, step, treated.step))
    gone = Gone(traces, texts, keys, {before[number].id for number in what.forgotten}, words)
    renamed = scrub(connection, [memory.id for memory in memories], gone, derived)
    connection.executemany(
        "UPDATE edits SET payload = ?, outcome = ?, reason = ?, call_key = ? WHERE number = ?",
        [
            (
                rows.dump(row.payload),
                row.outcome,
                None if row.reason is None else rows.pack(row.reason),
                renamed.get(row.call_key or "", row.call_key),
                number,
            )
            for number, row in logs
        ],
    )
    return steps


def scrub_turns(
    connection: sqlite3.Connection,
    document_id: str,
    gone: Sequence[Turn],
    shown: Collection[str] = (),
    derived: Derived = MappingProxyType({}),
) -> None:
    """Delete what models were asked about turns by one who had not heard yet that they are gone;
    ``gone`` are the turns as they were, ``shown`` other texts by which prompts show them."""
    memories = [memory.id for memory in _memories(connection, document_id)]
    texts = {text for turn in gone for text in _texts(turn)}
    told = {text for text in texts if len(one_line(text)) >= TELLING}
    traces = {turn.line for turn in gone} | told | set(shown)
    scrub(connection, memories, Gone(traces, {*texts, *shown}), derived)


def _overwrite(
    connection: sqlite3.Connection, document_id: str, before: Sequence[Turn], what: Redaction
) -> set[str]:
    """Overwrite the turns' text; the lines that had it, and what gives it away without them."""
    traces: set[str] = set()
    for number in what.turns:
        turn, whole = before[number], number in what.forgotten
        ranges: Ranges = [(0, len(turn.text))] if whole else what.masked[number]
        telling = TELLING if whole else _TELLING_PIECE
        pieces = (one_line(turn.text[start:end]).strip(MASK) for start, end in ranges)
        traces |= {turn.line, *(piece for piece in pieces if len(piece) >= telling)}
        connection.execute(
            """UPDATE turns SET text = ?, redacted = CASE redacted WHEN 1 THEN 1 ELSE ? END
            WHERE document_id = ? AND number = ?""",
            (rows.pack(masked(turn.text, ranges)), 1 if whole else 2, document_id, number),
        )
    connection.execute("UPDATE documents SET text = x'' WHERE id = ?", (document_id,))
    return traces


def _texts(turn: Turn) -> tuple[str, str]:
    return turn.line, turn.text


def _memories(connection: sqlite3.Connection, document_id: str) -> list[MemoryRecord]:
    found = connection.execute(
        f"SELECT {rows.MEMORY_COLUMNS} FROM memories WHERE document_id = ? ORDER BY number",
        (document_id,),
    )
    return [rows.memory_from_row(row) for row in found]


def _log(connection: sqlite3.Connection, memory_id: str) -> tuple[list[int], list[EditRecord], int]:
    """The numbers of a log's rows, the rows, and the memory's next step."""
    found = connection.execute(
        f"SELECT number, {rows.EDIT_COLUMNS} FROM edits WHERE memory_id = ? ORDER BY number",
        (memory_id,),
    ).fetchall()
    (last,) = connection.execute(
        "SELECT max(chunk) FROM steps WHERE memory_id = ?", (memory_id,)
    ).fetchone()
    numbers, log = [row[0] for row in found], [rows.edit_from_row(row[1:]) for row in found]
    return numbers, log, 0 if last is None else last + 1
