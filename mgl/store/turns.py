"""Conversations as rows: one a turn, under the document that stands for the transcript.

The document's own text stays empty; ``mgl.types.Conversation`` makes it of the turns. Functions
take a connection and are called within the store's transactions.
"""

from __future__ import annotations

import sqlite3
from datetime import datetime

from mgl.errors import StoreConflict, StoreError
from mgl.store import records
from mgl.types import CONVERSATION, Conversation, Document, Turn

_COLUMNS = "id, speaker, text, time, session"


def put_conversation(connection: sqlite3.Connection, conversation: Conversation) -> None:
    """Keep a conversation and the turns of it that are not there yet."""
    document = Document(
        conversation.id, conversation.name, "", (), CONVERSATION, conversation.notes
    )
    connection.execute(
        f"""INSERT INTO documents ({records.DOCUMENT_COLUMNS})
        VALUES ({records.placeholders(records.DOCUMENT_COLUMNS)}) ON CONFLICT (id) DO NOTHING""",
        records.document_row(document),
    )
    there = connection.execute(
        f"SELECT {_COLUMNS}, redacted FROM turns WHERE document_id = ? ORDER BY number",
        (conversation.id,),
    ).fetchall()
    for number, (turn, row) in enumerate(zip(conversation.turns, there, strict=False)):
        if not row[-1] and _row(turn) != row[:-1]:
            raise StoreError(
                f"turn {number + 1} of {conversation.name} ({turn.id}) differs from the one kept",
                hint="a conversation only grows: give another a name of its own",
            )
    for number, turn in enumerate(conversation.turns[len(there) :], len(there)):
        append(connection, conversation.id, number, turn)


def is_same(one: Turn, other: Turn) -> bool:
    """Whether two turns are kept alike: their times as they are written, since one in the hour that
    a time change repeats equals no other in Python."""
    return _row(one) == _row(other)


def append(connection: sqlite3.Connection, document_id: str, number: int, turn: Turn) -> None:
    """Add one turn; StoreConflict where its number or id is taken, or numbers would be left out."""
    (last,) = connection.execute(
        "SELECT max(number) FROM turns WHERE document_id = ?", (document_id,)
    ).fetchone()
    there = 0 if last is None else last + 1
    inserted = 0
    if there == number:
        inserted = connection.execute(
            f"""INSERT INTO turns (document_id, number, {_COLUMNS})
            VALUES (?, ?, {records.placeholders(_COLUMNS)}) ON CONFLICT DO NOTHING""",
            (document_id, number, *_row(turn)),
        ).rowcount
    if not inserted:
        raise StoreConflict(
            f"turn {turn.id!r} cannot be turn {number + 1}: the conversation has {there}, and it "
            "may be one of them",
            hint="another mgl may be writing to this conversation: try again",
        )


def conversation(connection: sqlite3.Connection, identity: str) -> Conversation | None:
    """The conversation of this id with all its turns, or None."""
    found = connection.execute(
        f"SELECT {records.DOCUMENT_COLUMNS} FROM documents WHERE id = ? AND media_type = ?",
        (identity, CONVERSATION),
    ).fetchone()
    if found is None:
        return None
    document = records.document_from_row(found)
    return Conversation(
        document.id, document.name, tuple(turns(connection, identity)), document.notes
    )


def count(connection: sqlite3.Connection, document_id: str) -> int | None:
    """How many turns a conversation has; None where the document is none, or is not there."""
    found = connection.execute(
        """SELECT (SELECT coalesce(max(number) + 1, 0) FROM turns WHERE document_id = documents.id)
        FROM documents WHERE id = ? AND media_type = ?""",
        (document_id, CONVERSATION),
    ).fetchone()
    return None if found is None else found[0]


def turns(connection: sqlite3.Connection, document_id: str, *, since: int = 0) -> list[Turn]:
    """The turns of a conversation in order, from the one with the number ``since`` on."""
    found = connection.execute(
        f"SELECT {_COLUMNS} FROM turns WHERE document_id = ? AND number >= ? ORDER BY number",
        (document_id, since),
    )
    return [_turn(row) for row in found]


def _row(turn: Turn) -> records.Row:
    return (
        records.pack(turn.id),
        records.pack(turn.speaker),
        records.pack(turn.text),
        None if turn.time is None else turn.time.isoformat(),
        None if turn.session is None else records.pack(turn.session),
    )


def _turn(row: records.Row) -> Turn:
    identity, speaker, text, time, session = row
    return Turn(
        records.unpack(identity),
        records.unpack(speaker),
        records.unpack(text),
        None if time is None else datetime.fromisoformat(time),
        None if session is None else records.unpack(session),
    )
