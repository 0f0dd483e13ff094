"""Which turns and calls a row was made of, and which deletions it may not know of.

Turns are kept as JSON ranges of their numbers, ends inclusive, so that "all so far" is as short in
a long conversation as in a short one:

    >>> encode_turns({0, 1, 2, 7})
    '[[0,2],[7,7]]'
    >>> decode_turns('[[0,2],[7,7]]')
    (0, 1, 2, 7)

None, for turns that nobody stated, stands for all.

Texts that were embedded or counted are known by their digests alone, each with the sets of turns
that it can be made of: a line that was said twice has two. A text is dropped once deletions have
met all its sets.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence, Set
from typing import Final, Literal

ALL: Final = "[[0,9223372036854775807]]"
"""All turns, those to come too, where a column may not be NULL."""


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


def meets(column: str | None, turns: Set[int]) -> bool:
    """Whether a column names any of some turns."""
    if column is None:
        return bool(turns)
    return any(
        not turns.isdisjoint(range(first, last + 1))
        if last - first < len(turns)
        else any(first <= number <= last for number in turns)
        for first, last in json.loads(column)
    )


def record_text(
    connection: sqlite3.Connection, document_id: str, digest: bytes, turns: str, *, is_exact: bool
) -> None:
    """Note the turns that a text is made of, as a column keeps them. Turns that are not exact are
    noted only where none are known."""
    connection.execute(
        """INSERT OR IGNORE INTO text_lineage SELECT :source, :digest, :turns
            WHERE :is_exact OR NOT EXISTS (
                SELECT 1 FROM text_lineage WHERE document_id = :source AND digest = :digest)""",
        {"source": document_id, "digest": digest, "turns": turns, "is_exact": is_exact},
    )


def release_texts(connection: sqlite3.Connection, document_id: str, turns: Set[int]) -> list[bytes]:
    """Drop the sets that a deletion meets; return the digests of the texts that have none left."""
    found = connection.execute(
        "SELECT DISTINCT turns FROM text_lineage WHERE document_id = ?", (document_id,)
    ).fetchall()
    met = json.dumps([column for (column,) in found if meets(column, turns)])
    dropped = connection.execute(
        """DELETE FROM text_lineage WHERE document_id = ?
        AND turns IN (SELECT value FROM json_each(?)) RETURNING digest""",
        (document_id, met),
    ).fetchall()
    select = "SELECT 1 FROM text_lineage WHERE document_id = ? AND digest = ?"
    return [
        digest
        for (digest,) in set(dropped)
        if connection.execute(select, (document_id, digest)).fetchone() is None
    ]


def link_calls(
    connection: sqlite3.Connection,
    table: Literal["answer_calls", "reply_calls"],
    row: Sequence[str | int],
    keys: Iterable[str],
) -> None:
    """Note the calls behind an answer or a reply, ``row`` being its columns in the table.

    A key stands for its first call with a completion, or else for the first that failed.
    """
    values = {f"value{place}": value for place, value in enumerate(row)}
    columns = ", ".join(f":{name}" for name in values)
    first = "SELECT number FROM llm_calls WHERE key = :key AND finish_reason"
    connection.executemany(
        f"""INSERT OR IGNORE INTO {table} SELECT {columns}, number FROM (
            SELECT ifnull(({first} IS NOT NULL ORDER BY number LIMIT 1),
                          ({first} IS NULL ORDER BY number LIMIT 1)) AS number
        ) WHERE number IS NOT NULL""",
        [{**values, "key": key} for key in keys],
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
    return any(meets(turns, frozenset(decode_turns(each) or ())) for (each,) in found)
