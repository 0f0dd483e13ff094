"""Who owns what the store keeps: the memories and evaluation runs that work now.

    owner = store.own("mem_3f9a", document.id)          # doctest: +SKIP
    with owned_by(owner):
        await memory.build()

Model calls, vectors and token counts are stored once and shared. Whoever makes or uses one owns it,
and it is deleted with its last owner. Owners are known by the digests of
the texts that they embedded and counted, and of the keys of their calls.

An owner is also a lease. When a memory or its source is deleted its owner goes, and whoever still
works as that owner can write nothing more (StoreDeleted), so no deleted row comes back.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from mgl.errors import StoreDeleted
from mgl.llm.calls import Lineage, find_lineage
from mgl.store import records
from mgl.store.file import DatabaseFile
from mgl.types import CONVERSATION

RUN: Final = "run "
"""The prefix of an owner that is an evaluation run; its folder follows."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner by its number in the store at ``path``."""

    path: Path
    number: int


_OWNERS: ContextVar[tuple[Owner, ...]] = ContextVar("owners", default=())


@contextmanager
def owned_by(*owners: Owner) -> Iterator[None]:
    """State who owns what is kept within, also by tasks and threads that are started within.

    Each store has its own owners; of several in one store the innermost counts.
    """
    token = _OWNERS.set((*_OWNERS.get(), *owners))
    try:
        yield
    finally:
        _OWNERS.reset(token)


def list_owners() -> tuple[Owner, ...]:
    """All owners that were stated, the innermost last."""
    return _OWNERS.get()


class Owners(DatabaseFile):
    """The owners of a file; every write checks that the one who writes is still there."""

    def own(
        self,
        identity: str,
        document_id: str | None = None,
        *,
        requires: Literal["memory", "source"] | None = None,
    ) -> Owner:
        """Return the owner with this id and source, which is made where it is missing.

        ``identity`` is a memory's id, or a run's (``RUN``), which works on many sources.
        StoreDeleted where the memory or the source that it ``requires`` is not there.
        """
        with self._read() as connection:
            found = _find_owner(connection, identity, document_id)
            if found is not None and _has(connection, identity, document_id, requires):
                return Owner(self.path, found)
        with self._write() as connection:
            if not _has(connection, identity, document_id, requires):
                raise StoreDeleted
            connection.execute(
                "INSERT INTO owners (id, document_id) VALUES (?, ?) ON CONFLICT DO NOTHING",
                (identity, document_id),
            )
            number = _find_owner(connection, identity, document_id)
            assert number is not None
            return Owner(self.path, number)

    def has_owner(self, owner: Owner) -> bool:
        """Whether an owner is still there: what it works on was not deleted."""
        with self._read() as connection:
            return _is_there(connection, owner)

    def source_of(self, owner: Owner) -> tuple[str | None, str | None]:
        """The id of an owner's source, and its present name; None where it is not stored yet."""
        with self._read() as connection:
            row = connection.execute(
                """SELECT owners.document_id, documents.name FROM owners
                LEFT JOIN documents ON documents.id = owners.document_id WHERE owners.number = ?""",
                (owner.number,),
            ).fetchone()
        if row is None:
            return None, None
        return row[0], None if row[1] is None else records.unpack(row[1])

    @property
    def _owner(self) -> Owner | None:
        """The owner of what is written now."""
        stated = (owner for owner in reversed(_OWNERS.get()) if owner.path == self.path)
        return next(stated, None)

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with super()._write() as connection:
            owner = self._owner
            if owner is not None and not _is_there(connection, owner):
                raise StoreDeleted
            yield connection

    def _take(self, connection: sqlite3.Connection, digests: Iterable[bytes]) -> None:
        """Own what is written."""
        owner = self._owner
        if owner is not None:
            connection.executemany(
                "INSERT INTO owned VALUES (?, ?) ON CONFLICT DO NOTHING",
                ((owner.number, digest) for digest in digests),
            )

    def _find_lineage(self, connection: sqlite3.Connection) -> Lineage | None:
        """Find the lineage of the texts that are written now: all turns of the owner's conversation
        where nobody stated which. None for a document and for a run: no deletion takes their texts.
        """
        select = """SELECT owners.id, document_id, media_type FROM owners
            LEFT JOIN documents ON documents.id = document_id WHERE number = ?"""
        owner = self._owner
        row = owner and connection.execute(select, (owner.number,)).fetchone()
        if not row:  # no owner, or a deleted one, which can write nothing
            return find_lineage()
        identity, source, media_type = row
        if identity.startswith(RUN):
            return None
        is_talk = source is not None and media_type in (None, CONVERSATION)
        return find_lineage() or (Lineage(source) if is_talk else None)


def release(
    connection: sqlite3.Connection, document_id: str, digests: Collection[bytes]
) -> list[bytes]:
    """Take some digests from the memories of a source; return those that nobody else owns."""
    connection.executemany(
        """DELETE FROM owned WHERE digest = ?
        AND owner IN (SELECT number FROM owners WHERE document_id = ? AND id NOT LIKE ?)""",
        [(digest, document_id, f"{RUN}%") for digest in digests],
    )
    return _list_free(connection, digests)


def remove_owners(connection: sqlite3.Connection, numbers: Collection[int]) -> list[bytes]:
    """Remove owners; return the digests that they had and nobody else owns."""
    chosen = json.dumps([*numbers])
    among = "owner IN (SELECT value FROM json_each(?))"
    had = connection.execute(f"SELECT DISTINCT digest FROM owned WHERE {among}", (chosen,))
    digests = [digest for (digest,) in had.fetchall()]
    connection.execute(
        "DELETE FROM owners WHERE number IN (SELECT value FROM json_each(?))", (chosen,)
    )
    return _list_free(connection, digests)


def _list_free(connection: sqlite3.Connection, digests: Iterable[bytes]) -> list[bytes]:
    select = "SELECT 1 FROM owned WHERE digest = ? LIMIT 1"
    return [each for each in digests if connection.execute(select, (each,)).fetchone() is None]


def find_source(connection: sqlite3.Connection, owner: Owner | None) -> str | None:
    """The document or conversation that an owner's memory is of."""
    if owner is None:
        return None
    (found,) = connection.execute(
        "SELECT document_id FROM owners WHERE number = ?", (owner.number,)
    ).fetchone()
    return None if found is None else str(found)


def _find_owner(
    connection: sqlite3.Connection, identity: str, document_id: str | None
) -> int | None:
    row = connection.execute(
        "SELECT number FROM owners WHERE id = ? AND ifnull(document_id, '') = ?",
        (identity, document_id or ""),
    ).fetchone()
    return None if row is None else int(row[0])


def _is_there(connection: sqlite3.Connection, owner: Owner) -> bool:
    select = "SELECT 1 FROM owners WHERE number = ?"
    return connection.execute(select, (owner.number,)).fetchone() is not None


def _has(
    connection: sqlite3.Connection,
    identity: str,
    document_id: str | None,
    requires: Literal["memory", "source"] | None,
) -> bool:
    if requires is None:
        return True
    table, key = ("memories", identity) if requires == "memory" else ("documents", document_id)
    return connection.execute(f"SELECT 1 FROM {table} WHERE id = ?", (key,)).fetchone() is not None
