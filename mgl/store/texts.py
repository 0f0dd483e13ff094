"""Texts that are searched by their words: one FTS5 table an index, in the store's own file.

So a text is searchable in the same transaction that keeps what it stands for, and each index has
its own statistics of words. Words are stemmed (Porter) and lose their accents; scores are FTS5's
BM25 (k1 = 1.2, b = 0.75), higher is better.

Functions take a connection and are called within the store's transactions. They know no stop
words: ``mgl.retrieval.lexical`` chooses what is asked for. A run of Chinese or Japanese is one
word.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from mgl.errors import StoreError

__all__ = ["count_texts", "drop_texts", "find_texts", "put_texts", "remove_texts"]


def put_texts(connection: sqlite3.Connection, index: str, texts: Mapping[int, str]) -> None:
    """Add texts by id, in place of those that are there; the index is made if it is missing."""
    table = _table(connection, index) or _create(connection, index)
    connection.executemany(
        f"INSERT OR REPLACE INTO {table} (rowid, text) VALUES (?, ?)",
        ((identity, _unicode(text)) for identity, text in texts.items()),
    )


def remove_texts(connection: sqlite3.Connection, index: str, ids: Iterable[int]) -> int:
    """Remove texts and return how many there were; nothing of their words is left in the index.

    The index is written anew for that, which takes seconds for a million texts.
    """
    table = _table(connection, index)
    if table is None:
        return 0
    removed: int = connection.execute(
        f"DELETE FROM {table} WHERE rowid IN (SELECT value FROM json_each(?))", (_json(ids),)
    ).rowcount
    if removed:
        connection.execute(f"INSERT INTO {table} ({table}) VALUES ('optimize')")
    return removed


def find_texts(
    connection: sqlite3.Connection,
    index: str,
    words: Sequence[str],
    count: int,
    among: Iterable[int] | None = None,
) -> list[tuple[int, float]]:
    """Ids and scores of the texts that hold any of the words, best first, ties by id.

    ``among`` names the ids that may be found.
    """
    table = _table(connection, index)
    if table is None or not words:
        return []
    wanted = " OR ".join(f'"{_quoted(word)}"' for word in words)
    # The plus keeps SQLite from searching once for each id, which takes a hundred times as long.
    chosen = "" if among is None else "AND +rowid IN (SELECT value FROM json_each(?))"
    rows = connection.execute(
        f"""SELECT rowid, bm25({table}) AS score FROM {table}
        WHERE {table} MATCH ? {chosen} ORDER BY score, rowid LIMIT ?""",
        (wanted, *(() if among is None else (_json(among),)), count),
    )
    return [(identity, -score) for identity, score in rows]


def count_texts(connection: sqlite3.Connection, index: str) -> int:
    """How many texts an index holds; 0 where there is no such index."""
    table = _table(connection, index)
    if table is None:
        return 0
    (count,) = connection.execute(f"SELECT count(*) FROM {table}_docsize").fetchone()
    return int(count)


def drop_texts(connection: sqlite3.Connection, index: str) -> None:
    """Remove an index with all its texts; one that is not there is no error."""
    table = _table(connection, index)
    if table is not None:
        connection.execute(f"DROP TABLE {table}")
        connection.execute("DELETE FROM text_indexes WHERE name = ?", (index,))


def _table(connection: sqlite3.Connection, index: str) -> str | None:
    row = connection.execute("SELECT number FROM text_indexes WHERE name = ?", (index,)).fetchone()
    return None if row is None else f"texts_{row[0]}"


def _create(connection: sqlite3.Connection, index: str) -> str:
    number = connection.execute("INSERT INTO text_indexes (name) VALUES (?)", (index,)).lastrowid
    try:
        connection.execute(
            f"""CREATE VIRTUAL TABLE texts_{number} USING fts5
            (text, tokenize = 'porter unicode61 remove_diacritics 2')"""
        )
    except sqlite3.OperationalError as error:
        if "no such module" not in str(error):
            raise
        raise StoreError(
            "this Python's SQLite has no FTS5, which texts are searched by",
            hint="use a Python whose SQLite has it, as those of python.org and of conda do",
        ) from error
    return f"texts_{number}"


def _quoted(word: str) -> str:
    return _unicode(word).replace('"', '""').replace("\0", " ")


def _unicode(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")


def _json(ids: Iterable[int]) -> str:
    return json.dumps([int(identity) for identity in ids])
