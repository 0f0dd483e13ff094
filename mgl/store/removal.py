"""Removal of memories, and of the document or conversation that they are of, in one transaction.

    store.plan_removal(document.id)                     # what would go        # doctest: +SKIP
    store.remove(document.id)                           # it, and all of it    # doctest: +SKIP

A memory goes with its edits, snapshot, answers, reports, indexes and calls, and the source with its
last memory: its text or turns, its name, and every call that showed it. Vectors, token counts and
calls that others own stay theirs (``mgl.store.owners``), and so do an evaluation run's calls, for
the run says what was measured. Whoever still works on what was removed writes nothing more
(StoreDeleted).
"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Final

from mgl.store import caches, owners, records
from mgl.store.owners import RUN
from mgl.store.records import MemoryRecord

_OF_MEMORY: Final = ("answers", "reports", "snapshots", "edits", "steps")


@dataclass(frozen=True, slots=True)
class Removal:
    """What a removal takes: ``memories`` with their ``questions``, ``answers``, ``edits`` and
    ``calls``.

    With ``takes_source`` the document or conversation called ``name`` goes, too: its
    ``characters``, or its ``turns``. ``kept`` are the ids of the memories that still need it.
    ``runs`` are the folders of the evaluation runs whose calls keep its text.
    """

    document_id: str
    name: str
    memories: tuple[MemoryRecord, ...]
    kept: tuple[str, ...]
    takes_source: bool
    characters: int
    turns: int | None
    questions: int
    answers: int
    edits: int
    calls: int
    runs: tuple[str, ...]


def find_calls(connection: sqlite3.Connection, removal: Removal) -> list[tuple[int, str, bool]]:
    """The calls of a removal: their numbers and keys, and whether a completion came back.

    Those of an evaluation run are the run's.
    """
    found = connection.execute(
        """SELECT number, key, finish_reason IS NOT NULL FROM llm_calls
        WHERE memory_id IN (SELECT value FROM json_each(?))
        UNION SELECT number, key, finish_reason IS NOT NULL FROM llm_calls
        WHERE ? AND document_id = ? AND (memory_id IS NULL OR memory_id NOT LIKE ?)
        ORDER BY number""",
        (_list_ids(removal), removal.takes_source, removal.document_id, f"{RUN}%"),
    )
    return [(number, key, bool(is_done)) for number, key, is_done in found.fetchall()]


def remove(connection: sqlite3.Connection, removal: Removal) -> None:
    """Remove what was planned; call it in the transaction in which it was planned."""
    ids, source = _list_ids(removal), removal.document_id
    calls = find_calls(connection, removal)
    gone = connection.execute(
        """SELECT number FROM owners WHERE id IN (SELECT value FROM json_each(?))
        OR (? AND document_id = ? AND id NOT LIKE ?)""",
        (ids, removal.takes_source, source, f"{RUN}%"),
    )
    free = owners.remove_owners(connection, [number for (number,) in gone.fetchall()])
    for memory in removal.memories:
        caches.drop_indexes(connection, f"{memory.id}/")
    caches.drop_texts(connection, free)
    connection.executemany(
        "DELETE FROM text_lineage WHERE document_id = ? AND digest = ?",
        ((source, digest) for digest in free),
    )
    for number, key, is_done in calls:
        _pass_on_call(connection, number, key if is_done else None)
    for table in _OF_MEMORY:
        connection.execute(
            f"DELETE FROM {table} WHERE memory_id IN (SELECT value FROM json_each(?))", (ids,)
        )
    connection.execute("DELETE FROM memories WHERE id IN (SELECT value FROM json_each(?))", (ids,))
    if removal.takes_source:
        for table in ("turns", "corrections", "deletions", "text_lineage"):
            connection.execute(f"DELETE FROM {table} WHERE document_id = ?", (source,))
        connection.execute("DELETE FROM names WHERE document_id = ?", (source,))
        connection.execute("DELETE FROM documents WHERE id = ?", (source,))


def _pass_on_call(connection: sqlite3.Connection, number: int, key: str | None) -> None:
    """Delete a call, or give it to another memory that replays it.

    What that one showed of it is not known: for a conversation it counts as all turns.
    """
    heir = (
        key
        and connection.execute(
            """SELECT owners.id, owners.document_id FROM owned
        JOIN owners ON owners.number = owned.owner
        WHERE owned.digest = ? AND owners.document_id IS NOT NULL AND owners.id NOT LIKE ?
        ORDER BY owners.number LIMIT 1""",
            (records.text_digest(key), f"{RUN}%"),
        ).fetchone()
    )
    if not heir:
        connection.execute("DELETE FROM llm_calls WHERE number = ?", (number,))
        return
    connection.execute(
        """UPDATE llm_calls SET memory_id = ?, document_id = ?,
        turns = CASE WHEN document_id = ? THEN turns END WHERE number = ?""",
        (*heir, heir[1], number),
    )


def _list_ids(removal: Removal) -> str:
    return json.dumps([memory.id for memory in removal.memories])
