"""The names by which conversations are found.

A conversation has one name, which leads to no other. One that is renamed keeps its id, and its
earlier name is free for another. Only a client that sends the id of a chat, which people neither
see nor choose, is still led by it to the conversation that was called so.
"""

from __future__ import annotations

import sqlite3

from mgl.errors import Conflict, StoreConflict
from mgl.store.records import pack, unpack
from mgl.types import CONVERSATION, Conversation


def find_id(connection: sqlite3.Connection, name: str) -> str | None:
    """The id of the conversation that is known by this name, if there is one."""
    own = Conversation.from_name(name)
    row = (
        connection.execute(
            "SELECT id FROM documents WHERE named = 1 AND name = ?", (pack(own.name),)
        ).fetchone()
        or connection.execute(
            "SELECT id FROM documents WHERE id = ? AND name = ?", (own.id, pack(own.name))
        ).fetchone()
    )
    return None if row is None else str(row[0])


def find_renamed(connection: sqlite3.Connection, name: str) -> str | None:
    """The present name of the conversation that was the first to be called so before."""
    row = connection.execute(
        """SELECT documents.name FROM documents JOIN names ON document_id = id
        WHERE names.name = ? AND media_type = ? ORDER BY created_at, id""",
        (pack(Conversation.from_name(name).name), CONVERSATION),
    ).fetchone()
    return None if row is None else unpack(row[0])


def is_taken(connection: sqlite3.Connection, identity: str) -> bool:
    """Whether a document or conversation has this id."""
    select = "SELECT 1 FROM documents WHERE id = ?"
    return connection.execute(select, (identity,)).fetchone() is not None


def mark_named(connection: sqlite3.Connection, identity: str, name: str) -> None:
    """Note that a conversation is known by its name; StoreConflict if it has another by now."""
    update = "UPDATE documents SET named = 1 WHERE id = ? AND name = ?"
    if not connection.execute(update, (identity, pack(name))).rowcount:
        raise name_conflict(name)


def require_free(connection: sqlite3.Connection, identity: str, name: str) -> None:
    """Raise Conflict where another document or conversation than this one has the name."""
    select = "SELECT 1 FROM documents WHERE name = ? AND id != ?"
    if connection.execute(select, (pack(name), identity)).fetchone() is not None:
        raise Conflict(
            f"another document or conversation is called {name} already",
            hint="give it a name that `mgl list` lacks",
        )


def rename(connection: sqlite3.Connection, identity: str, name: str) -> bool:
    """Give a conversation a name, and keep the one before; False if it is not there."""
    connection.execute(
        "INSERT OR IGNORE INTO names SELECT id, name FROM documents WHERE id = ? AND name != ?",
        (identity, pack(name)),
    )
    update = "UPDATE documents SET name = ?, named = 1 WHERE id = ?"
    return connection.execute(update, (pack(name), identity)).rowcount == 1


def name_conflict(name: str) -> StoreConflict:
    """What is raised where two begin or rename a conversation at the same time."""
    return StoreConflict(
        f"another conversation was called {name!r} meanwhile", hint="run the same command again"
    )
