"""Conversations as rows: one a turn, under the document that stands for the transcript.

The document's own text stays empty; ``mgl.types.Conversation`` makes it of the turns. Of a deleted
turn a digest stays, by which it is known again when a client sends it once more. The key of digests
lies beside the database, so that the database alone does not tell whether a guess is right.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import count
from sys import intern

from mgl.errors import StoreConflict, StoreError
from mgl.store import names, records
from mgl.store.file import read_secret
from mgl.store.lineage import decode_turns, encode_turns, link_calls
from mgl.store.owners import Owners
from mgl.types import CONVERSATION, Conversation, Document, Turn

_COLUMNS = "id, speaker, text, time, session"


@dataclass(frozen=True, slots=True)
class ReplySources:
    """The turns that a reply was made of (what it replies to, and what it cites), and all that its
    prompt showed, by their numbers; the keys of the ``calls`` behind a reply that is to be kept."""

    made_of: frozenset[int]
    shown: frozenset[int]
    calls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Correction:
    """That a turn says what another, ``corrects``, should have said; when it was told, in UTC."""

    corrects: int
    corrected_at: str


class TurnTable(Owners):
    """The conversations of a file."""

    def put_conversation(self, conversation: Conversation) -> None:
        """Keep a conversation; if it exists already, add the turns it lacks.

        StoreError if an existing turn differs, StoreConflict if the name of a new one was taken
        meanwhile; nothing is written then.
        """
        identity, name, count = conversation.id, conversation.name, len(conversation.turns)
        document = Document(identity, name, "", (), CONVERSATION, conversation.notes)
        with self._write() as connection:
            if conversation.is_named and names.find_id(connection, name) not in (None, identity):
                raise names.name_conflict(name)
            connection.execute(
                f"""INSERT INTO documents ({records.DOCUMENT_COLUMNS})
                VALUES ({records.placeholders(records.DOCUMENT_COLUMNS)})
                ON CONFLICT (id) DO NOTHING""",
                records.document_row(document),
            )
            if conversation.is_named:
                names.mark_named(connection, identity, name)
            there = connection.execute(
                f"SELECT {_COLUMNS}, redacted, digest FROM turns WHERE document_id = ? "
                "AND number < ? ORDER BY number",
                (identity, count),
            ).fetchall()
            for number, (turn, row) in enumerate(zip(conversation.turns, there, strict=False)):
                if _row(turn) != row[:-2] and not self._is_deleted_as(turn, row):
                    raise StoreError(
                        f"turn {number + 1} of {name} ({turn.id}) differs from the one kept",
                        hint="a conversation only grows: give another a name of its own",
                    )
            for number, turn in enumerate(conversation.turns[len(there) :], len(there)):
                insert_turn(connection, identity, number, turn)

    def conversation(self, identity: str, *, with_turns: bool = True) -> Conversation:
        """Load a conversation, or only its name and notes; StoreError if there is none."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT name, notes FROM documents WHERE id = ? AND media_type = ?",
                (identity, CONVERSATION),
            ).fetchone()
            if found is None:
                raise self._no_document(identity)
            name, notes = records.unpack(found[0]), tuple(json.loads(found[1]))
            turns = tuple(self.turns(identity)) if with_turns else ()
            return Conversation(identity, name, turns, notes)

    def named_conversation(self, name: str) -> Conversation:
        """The conversation that is known by this exact name, without its turns: the stored one, or
        one to begin."""
        with self._read() as connection:
            known = names.find_id(connection, name)
            if known is not None:
                return replace(Conversation.from_name(name), id=known)
            begun = (Conversation.from_name(name, renamed) for renamed in count())
            return next(each for each in begun if not names.is_taken(connection, each.id))

    def find_chat(self, name: str) -> str:
        """Find the name of the conversation in which a client's chat with this id goes on.

        A conversation that had this name before it was renamed comes first.
        """
        with self._read() as connection:
            return names.find_renamed(connection, name) or name

    def rename_conversation(self, identity: str, name: str) -> None:
        """Rename a conversation, which from then on is known by this name alone.

        Its ids stay, and so does all that names them. Conflict where another document or
        conversation has the name; StoreError if there is none.
        """
        with self._write() as connection:
            names.require_free(connection, identity, name)
            if not names.rename(connection, identity, name):
                raise self._no_document(identity)

    def turns(self, conversation_id: str, *, since: int = 0) -> list[Turn]:
        """The turns of a conversation from number ``since`` on; empty if it does not exist."""
        return list(map(decode_turn, self.read_turns(conversation_id, since=since)))

    def read_turns(self, conversation_id: str, *, since: int = 0) -> list[records.Row]:
        """The rows of ``turns``, for ``decode_turn``: id, speaker and text as UTF-8, time, session
        as UTF-8."""
        with self._read() as connection:
            return connection.execute(
                f"SELECT {_COLUMNS} FROM turns WHERE document_id = ? AND number >= ? "
                "ORDER BY number",
                (conversation_id, since),
            ).fetchall()

    def find_turns(self, conversation_id: str, ids: Collection[str]) -> list[Turn]:
        """The turns of a conversation with some ids, in their order."""
        with self._read() as connection:
            found = connection.execute(
                f"""SELECT {_COLUMNS} FROM turns WHERE document_id = ?
                AND id IN ({", ".join("?" for _ in ids)}) ORDER BY number""",
                (conversation_id, *map(records.pack, ids)),
            )
            return [decode_turn(row) for row in found]

    def count_turns(self, document_id: str) -> int | None:
        """How many turns a conversation has that were not deleted; None if no conversation has
        this id."""
        with self._read() as connection:
            found = connection.execute(
                """SELECT
                (SELECT coalesce(max(number) + 1, 0) FROM turns WHERE document_id = documents.id)
                - (SELECT count(*) FROM turns INDEXED BY deleted_turns
                   WHERE document_id = documents.id AND redacted > 0 AND redacted = 1)
                FROM documents WHERE id = ? AND media_type = ?""",
                (document_id, CONVERSATION),
            ).fetchone()
            return None if found is None else found[0]

    def was_deleted_as(self, conversation_id: str, number: int, turn: Turn) -> bool:
        """Whether the turn with this number is what is left of ``turn`` after a deletion."""
        with self._read() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS}, redacted, digest FROM turns "
                "WHERE document_id = ? AND number = ?",
                (conversation_id, number),
            ).fetchone()
        return row is not None and self._is_deleted_as(turn, row)

    def find_digests(self, conversation_id: str) -> dict[int, bytes]:
        """The digests of the turns that were deleted, or masked in part, by their number."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT number, digest FROM turns INDEXED BY deleted_turns "
                "WHERE document_id = ? AND redacted > 0 AND digest IS NOT NULL",
                (conversation_id,),
            )
            return dict(found.fetchall())

    def find_follows(self, conversation_id: str, *, since: int = 0) -> dict[int, int]:
        """The turn before each turn in the history of a client, both by number, where known."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT number, follows FROM turns "
                "WHERE document_id = ? AND number >= ? AND follows IS NOT NULL",
                (conversation_id, since),
            )
            return dict(found.fetchall())

    def set_follows(self, conversation_id: str, follows: Mapping[int, int]) -> None:
        """Keep which turn each of some turns follows, both by number."""
        with self._write() as connection:
            connection.executemany(
                "UPDATE turns SET follows = ? WHERE document_id = ? AND number = ?",
                [(before, conversation_id, number) for number, before in follows.items()],
            )

    def put_correction(self, conversation_id: str, number: int, corrects: int) -> None:
        """Note that a turn says what another should have said, both by number."""
        with self._write() as connection:
            connection.execute(
                "INSERT OR IGNORE INTO corrections (document_id, number, corrects) "
                "VALUES (?, ?, ?)",
                (conversation_id, number, corrects),
            )

    def find_corrections(self, conversation_id: str) -> dict[int, Correction]:
        """The turns that correct others, by their number."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT number, corrects, corrected_at FROM corrections WHERE document_id = ?",
                (conversation_id,),
            )
            return {number: Correction(*rest) for number, *rest in found}

    def forget_digests(self, conversation_id: str, numbers: Collection[int]) -> None:
        """Drop the digests of deleted turns: who says the same again says something new."""
        with self._write() as connection:
            connection.executemany(
                "UPDATE turns SET digest = NULL, follows = NULL "
                "WHERE document_id = ? AND number = ? AND redacted = 1",
                [(conversation_id, number) for number in numbers],
            )

    def digest_text(self, text: str) -> bytes:
        """The keyed hash of a text, without the space around it."""
        said = records.pack(text.strip())
        return hashlib.blake2b(said, key=self._secret, digest_size=16).digest()

    def find_replies(self, conversation_id: str) -> dict[int, ReplySources]:
        """What the replies of a conversation were made of, by their number."""
        with self._read() as connection:
            found = connection.execute(
                "SELECT number, made_of, shown FROM turns INDEXED BY replies "
                "WHERE document_id = ? AND made_of IS NOT NULL",
                (conversation_id,),
            ).fetchall()
        return {
            number: ReplySources(
                frozenset(decode_turns(made_of) or ()), frozenset(decode_turns(shown) or ())
            )
            for number, made_of, shown in found
        }

    @cached_property
    def _secret(self) -> bytes:
        return read_secret(self.path.with_suffix(".key"))

    def _is_deleted_as(self, turn: Turn, row: records.Row) -> bool:
        """Whether a row, with ``redacted`` and ``digest``, is what is left of a turn."""
        identity, speaker, _, time, session, redacted, digest = row
        whole = _row(turn)
        is_kept = (whole[0], whole[1], *whole[3:]) == (identity, speaker, time, session)
        return bool(redacted) and is_kept and digest == self.digest_text(turn.text)

    def _no_document(self, identity: str) -> StoreError:
        return StoreError(
            f"there is no document {identity!r} in {self.path}",
            hint="`mgl list` shows the memories and their documents",
        )


def is_same(one: Turn, other: Turn) -> bool:
    """Whether two turns are kept alike: their times as they are written, since one in the hour that
    a time change repeats equals no other in Python."""
    return _row(one) == _row(other)


def insert_turn(
    connection: sqlite3.Connection,
    document_id: str,
    number: int,
    turn: Turn,
    sources: ReplySources | None = None,
) -> None:
    """Add one turn to an existing conversation.

    StoreConflict if its number or id is taken, or a number would be skipped.
    """
    made_of = None if sources is None else encode_turns(sources.made_of)
    shown = None if sources is None else encode_turns(sources.shown)
    (there,) = connection.execute(
        "SELECT coalesce(max(number) + 1, 0) FROM turns WHERE document_id = ?", (document_id,)
    ).fetchone()
    inserted = 0
    if there == number:
        inserted = connection.execute(
            f"""INSERT INTO turns (document_id, number, {_COLUMNS}, made_of, shown)
            VALUES (?, ?, {records.placeholders(_COLUMNS)}, ?, ?) ON CONFLICT DO NOTHING""",
            (document_id, number, *_row(turn), made_of, shown),
        ).rowcount
    if not inserted:
        raise StoreConflict(
            f"turn {turn.id!r} cannot be turn {number + 1}: the conversation has {there}, and it "
            "may be one of them",
            hint="another mgl may be writing to this conversation: try again",
        )
    if sources is not None:
        link_calls(connection, "reply_calls", (document_id, number), sources.calls)


def _row(turn: Turn) -> records.Row:
    return (
        records.pack(turn.id),
        records.pack(turn.speaker),
        records.pack(turn.text),
        None if turn.time is None else turn.time.isoformat(),
        None if turn.session is None else records.pack(turn.session),
    )


def decode_turn(row: records.Row) -> Turn:
    """The turn of a row of ``read_turns``; turns share the names of their speakers and sessions."""
    identity, speaker, text, time, session = row
    return Turn(
        records.unpack(identity),
        intern(records.unpack(speaker)),
        records.unpack(text),
        None if time is None else datetime.fromisoformat(time),
        None if session is None else intern(records.unpack(session)),
    )
