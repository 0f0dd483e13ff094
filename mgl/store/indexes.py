"""What search indexes keep in the store: the stems of each text, and which text has which vector.

An index has a name and rows by integer id. A lexical index keeps the hashed stems of its texts, a
vector index points to the vectors that are cached by text, so no vector is stored twice. Every
change increments the index's version, by which a process notices what another one wrote. Rows
hold no text, and what is removed is overwritten in the file (``secure_delete``).

Functions take a connection and run in the caller's transaction. How rows are searched is the
business of ``mgl.retrieval.lexical`` and ``mgl.retrieval.vectors``.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mgl.store import rows

__all__ = [
    "drop",
    "find_version",
    "put_stems",
    "put_vectors",
    "read_stems",
    "read_vectors",
    "remove_rows",
]

StemRow = tuple[int, bool, bytes]
"""A text's id, whether a passage begins with it, and its hashed stems in order (int64 each)."""

_INDEXED = "JOIN indexes ON indexes.number = rows.index_number WHERE indexes.name = ?"


def find_version(connection: sqlite3.Connection, name: str) -> int:
    """The number of changes made to an index, 0 where there is no index of this name."""
    row = connection.execute("SELECT version FROM indexes WHERE name = ?", (name,)).fetchone()
    return 0 if row is None else int(row[0])


def read_stems(connection: sqlite3.Connection, name: str) -> list[StemRow]:
    """All texts of a lexical index, by id."""
    select = f"SELECT id, starts, stems FROM index_stems AS rows {_INDEXED} ORDER BY id"
    return connection.execute(select, (name,)).fetchall()


def put_stems(connection: sqlite3.Connection, name: str, texts: Iterable[StemRow]) -> int:
    """Add texts to a lexical index or replace them; return its new version."""
    number, version = _change(connection, name)
    connection.executemany(
        "INSERT OR REPLACE INTO index_stems VALUES (?, ?, ?, ?)",
        ((number, identity, starts, stems) for identity, starts, stems in texts),
    )
    return version


def read_vectors(connection: sqlite3.Connection, name: str) -> list[tuple[int, bytes]]:
    """The vector (float32) of each id of a vector index, by id."""
    select = f"""SELECT id, vector FROM index_vectors AS rows
        JOIN vectors ON vectors.number = rows.vector_number {_INDEXED} ORDER BY id"""
    return connection.execute(select, (name,)).fetchall()


def put_vectors(
    connection: sqlite3.Connection,
    name: str,
    model_id: str,
    texts: Mapping[int, str],
    vectors: NDArray[np.float32],
) -> int:
    """Add texts with their vectors, shape (n, dims), or replace them; return the new version.

    A text that has a cached vector keeps that one.
    """
    number, version = _change(connection, name)
    digests = [rows.text_digest(text) for text in texts.values()]
    connection.executemany(
        "INSERT INTO vectors (model_id, digest, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (
            (model_id, digest, vector.astype("<f4").tobytes())
            for digest, vector in zip(digests, vectors, strict=True)
        ),
    )
    connection.executemany(
        """INSERT OR REPLACE INTO index_vectors
        SELECT ?, ?, number FROM vectors WHERE model_id = ? AND digest = ?""",
        [
            (number, identity, model_id, digest)
            for identity, digest in zip(texts, digests, strict=True)
        ],
    )
    return version


def remove_rows(connection: sqlite3.Connection, name: str, ids: Sequence[int]) -> int:
    """Remove ids from an index of either kind; return its new version.

    A vector that no index has any more leaves the cache.
    """
    number, version = _change(connection, name)
    chosen = (number, json.dumps([int(identity) for identity in ids]))
    among = "index_number = ? AND id IN (SELECT value FROM json_each(?))"
    connection.execute(f"DELETE FROM index_stems WHERE {among}", chosen)
    removed = connection.execute(
        f"DELETE FROM index_vectors WHERE {among} RETURNING vector_number", chosen
    ).fetchall()
    _drop_unused(connection, removed)
    return version


def drop(connection: sqlite3.Connection, prefix: str) -> None:
    """Remove every index whose name begins so."""
    found = connection.execute(
        "SELECT name, number FROM indexes WHERE substr(name, 1, ?) = ?", (len(prefix), prefix)
    ).fetchall()
    for name, number in found:
        ids = connection.execute("SELECT id FROM index_vectors WHERE index_number = ?", (number,))
        remove_rows(connection, name, [identity for (identity,) in ids.fetchall()])
        connection.execute("DELETE FROM index_stems WHERE index_number = ?", (number,))
        connection.execute("DELETE FROM indexes WHERE number = ?", (number,))


def forget_turns(connection: sqlite3.Connection, memory_id: str, turns: Collection[int]) -> None:
    """Remove deleted turns from the indexes of a memory.

    Indexes named ``<memory>/turns`` have turns' numbers for ids, and one of turns with the turn
    before (``+``) loses the next, too. All others are emptied, for what they hold is not known
    here: a memory extends an index by what it lacks, and the vectors of what is left are cached.
    """
    prefix = f"{memory_id}/"
    found = connection.execute(
        "SELECT name FROM indexes WHERE substr(name, 1, ?) = ?", (len(prefix), prefix)
    ).fetchall()
    for (name,) in found:
        what, _, rest = name.removeprefix(prefix).partition("@")[0].partition("+")
        if what == "turns":
            ids = {*turns, *(number + 1 for number in turns if rest)}
            remove_rows(connection, name, sorted(ids))
            continue
        number, _ = _change(connection, name)
        for table in ("index_stems", "index_vectors"):
            connection.execute(f"DELETE FROM {table} WHERE index_number = ?", (number,))


def _change(connection: sqlite3.Connection, name: str) -> tuple[int, int]:
    """An index's number and its next version; the index is made if it is missing."""
    row = connection.execute(
        """INSERT INTO indexes (name, version) VALUES (?, 1)
        ON CONFLICT (name) DO UPDATE SET version = version + 1 RETURNING number, version""",
        (name,),
    ).fetchone()
    return int(row[0]), int(row[1])


def _drop_unused(connection: sqlite3.Connection, numbers: Iterable[tuple[int]]) -> None:
    connection.executemany(
        """DELETE FROM vectors WHERE number = ?
        AND NOT EXISTS (SELECT 1 FROM index_vectors WHERE vector_number = vectors.number)""",
        numbers,
    )
