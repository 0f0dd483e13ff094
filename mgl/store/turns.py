"""Conversations as rows: one a turn, under the document that stands for the transcript.

The document's own text stays empty; ``mgl.types.Conversation`` makes it of the turns.
"""

from __future__ import annotations

import json
import sqlite3
from datetime import datetime
from sys import intern

from mgl.errors import StoreConflict, StoreError
from mgl.store import records
from mgl.store.file import DatabaseFile
from mgl.types import CONVERSATION, Conversation, Document, Turn

_COLUMNS = "id, speaker, text, time, session"


class Turns(DatabaseFile):
    """The conversations of a file."""

    def put_conversation(self, conversation: Conversation) -> None:
        """Keep a conversation; one that is there already takes the turns that it lacks.

        StoreError, and nothing written, where a turn that is there differs.
        """
        identity, name = conversation.id, conversation.name
        document = Document(identity, name, "", (), CONVERSATION, conversation.notes)
        with self._write() as connection:
            connection.execute(
                f"""INSERT INTO documents ({records.DOCUMENT_COLUMNS})
                VALUES ({records.placeholders(records.DOCUMENT_COLUMNS)})
                ON CONFLICT (id) DO NOTHING""",
                records.document_row(document),
            )
            there = connection.execute(
                f"SELECT {_COLUMNS}, redacted FROM turns WHERE document_id = ? ORDER BY number",
                (identity,),
            ).fetchall()
            for number, (turn, row) in enumerate(zip(conversation.turns, there, strict=False)):
                if not row[-1] and _row(turn) != row[:-1]:
                    raise StoreError(
                        f"turn {number + 1} of {name} ({turn.id}) differs from the one kept",
                        hint="a conversation only grows: give another a name of its own",
                    )
            for number, turn in enumerate(conversation.turns[len(there) :], len(there)):
                insert_turn(connection, identity, number, turn)

    def conversation(self, identity: str) -> Conversation:
        """The conversation with this id; StoreError if there is none."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT name, notes FROM documents WHERE id = ? AND media_type = ?",
                (identity, CONVERSATION),
            ).fetchone()
            if found is None:
                raise self._no_document(identity)
            name, notes = records.unpack(found[0]), tuple(json.loads(found[1]))
            return Conversation(identity, name, tuple(self.turns(identity)), notes)

    def turns(self, conversation_id: str, *, since: int = 0) -> list[Turn]:
        """The turns of a conversation, from the number ``since`` on; none where there is none."""
        with self._read() as connection:
            found = connection.execute(
                f"SELECT {_COLUMNS} FROM turns WHERE document_id = ? AND number >= ? "
                "ORDER BY number",
                (conversation_id, since),
            )
            return [_turn(row) for row in found]

    def count_turns(self, document_id: str) -> int | None:
        """How many turns a conversation has; None where there is no conversation of this id."""
        with self._read() as connection:
            found = connection.execute(
                """SELECT
                (SELECT coalesce(max(number) + 1, 0) FROM turns WHERE document_id = documents.id)
                FROM documents WHERE id = ? AND media_type = ?""",
                (document_id, CONVERSATION),
            ).fetchone()
            return None if found is None else found[0]

    def _no_document(self, identity: str) -> StoreError:
        return StoreError(
            f"there is no document {identity!r} in {self.path}",
            hint="`mgl list` shows the memories and their documents",
        )


def is_same(one: Turn, other: Turn) -> bool:
    """Whether two turns are kept alike: their times as they are written, since one in the hour that
    a time change repeats equals no other in Python."""
    return _row(one) == _row(other)


def insert_turn(connection: sqlite3.Connection, document_id: str, number: int, turn: Turn) -> None:
    """Add one turn; StoreConflict where its number or id is taken, or numbers would be left out."""
    (there,) = connection.execute(
        "SELECT coalesce(max(number) + 1, 0) FROM turns WHERE document_id = ?", (document_id,)
    ).fetchone()
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


def _row(turn: Turn) -> records.Row:
    return (
        records.pack(turn.id),
        records.pack(turn.speaker),
        records.pack(turn.text),
        None if turn.time is None else turn.time.isoformat(),
        None if turn.session is None else records.pack(turn.session),
    )


def _turn(row: records.Row) -> Turn:
    """The turn of a row; turns share the names of their speakers and sessions."""
    identity, speaker, text, time, session = row
    return Turn(
        records.unpack(identity),
        intern(records.unpack(speaker)),
        records.unpack(text),
        None if time is None else datetime.fromisoformat(time),
        None if session is None else intern(records.unpack(session)),
    )
