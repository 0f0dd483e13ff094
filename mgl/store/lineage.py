"""Which turns and calls a row was made of, and which deletions it may not know of.

Turns are kept as JSON ranges of their numbers, ends inclusive, so that "all so far" is as short in
a long conversation as in a short one:

    >>> encode_turns({0, 1, 2, 7})
    '[[0,2],[7,7]]'
    >>> decode_turns('[[0,2],[7,7]]')
    (0, 1, 2, 7)

None, for turns that nobody stated, stands for all.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Literal


def encode_turns(turns: Iterable[int] | None) -> str | None:
    """Turns as a column keeps them."""
    if turns is None:
        return None
    ranges: list[list[int]] = []
    for number in sorted(set(turns)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return json.dumps(ranges, separators=(",", ":"))


def decode_turns(column: str | None) -> tuple[int, ...] | None:
    """The turns that a column keeps, in order."""
    if column is None:
        return None
    if column == "[]":  # nearly every row
        return ()
    return tuple(n for first, last in json.loads(column) for n in range(first, last + 1))


def meets(column: str | None, turns: Collection[int]) -> bool:
    """Whether a column has one of some turns."""
    if column is None:
        return bool(turns)
    ranges = json.loads(column)
    return any(first <= number <= last for first, last in ranges for number in turns)


def link_calls(
    connection: sqlite3.Connection,
    table: Literal["answer_calls", "reply_calls"],
    row: Sequence[str | int],
    keys: Iterable[str],
) -> None:
    """Note the calls behind an answer or a reply, ``row`` being its columns in the table.

    A key stands for its first call with a completion, or else for the first that failed.
    """
    connection.executemany(
        f"""INSERT OR IGNORE INTO {table} SELECT {", ".join("?" for _ in row)}, number
        FROM llm_calls WHERE key = ? ORDER BY finish_reason IS NULL, number LIMIT 1""",
        [(*row, key) for key in keys],
    )


def record_deletion(connection: sqlite3.Connection, document_id: str, turns: Iterable[int]) -> None:
    """Note that turns of a conversation were deleted, or parts of them."""
    connection.execute(
        "INSERT INTO deletions (document_id, turns) VALUES (?, ?)",
        (document_id, encode_turns(turns)),
    )


def count_deletions(connection: sqlite3.Connection, document_id: str | None) -> int:
    """The number of the last deletion from a conversation, or from any; 0 before the first."""
    among, values = ("", ()) if document_id is None else ("WHERE document_id = ?", (document_id,))
    (last,) = connection.execute(f"SELECT max(number) FROM deletions {among}", values).fetchone()
    return last or 0


def count_deletions_of(connection: sqlite3.Connection, memory_id: str) -> int:
    """The number of the last deletion from a memory's source."""
    (source,) = connection.execute(
        "SELECT document_id FROM memories WHERE id = ?", (memory_id,)
    ).fetchone()
    return count_deletions(connection, source)


def deleted_since(
    connection: sqlite3.Connection, document_id: str, since: int | None, turns: str | None
) -> bool:
    """Whether one of the turns of a column was deleted after the deletion ``since``.

    False where nobody says since when (None).
    """
    if since is None:
        return False
    found = connection.execute(
        "SELECT turns FROM deletions WHERE document_id = ? AND number > ?", (document_id, since)
    )
    return any(meets(turns, decode_turns(each) or ()) for (each,) in found)
