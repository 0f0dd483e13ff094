"""The file of a store: opened, closed, read and written, one call at a time.

One connection behind a lock: safe from several threads. Write-ahead log, so that readers never wait
for the writer; a bounded wait for another process that writes. A process that is killed loses the
transaction it was in and nothing else; a machine that loses power may lose the last committed ones,
never the file. What is deleted or overwritten is overwritten in the file, too (``secure_delete``),
but SQLite leaves copies of rows that it once moved to another page: ``wipe`` writes the whole file
anew. A file that has to be wiped is marked, so that a process that is killed meanwhile leaves it to
the next one that opens it. Every failure of SQLite or the disk is a StoreError or ResourceError.

It does not know what the tables hold.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from mgl.errors import MglError, ResourceError, StoreError
from mgl.models.permissions import create_private, make_private_folder, open_new_private, restrict
from mgl.store.schema import migrate, transaction

_BUSY_TIMEOUT_S = 10.0
_SECRET_BYTES = 32
_FAILURES = (sqlite3.Error, UnicodeEncodeError)
_WIPED, _UNWIPED = 0, 1
_IN_THE_WAY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL)


class DatabaseFile:
    """An open database; a context manager that closes it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._is_closed = False
        self._connection = connection
        self._access = _Access(path, connection)

    @classmethod
    def open(cls, path: Path, *, busy_timeout_s: float = _BUSY_TIMEOUT_S) -> Self:
        """Open or create the database at ``path`` and bring it to the current schema.

        ``busy_timeout_s`` is how long a write waits for another process that writes. Raises
        StoreError (damaged, locked, written by a newer mgl) or ResourceError (not writable).
        """
        try:
            make_private_folder(path.parent)
        except OSError as error:
            raise ResourceError(
                f"cannot create the folder {path.parent} ({error.strerror})",
                hint="set MGL_HOME to a folder that you can write to",
            ) from error
        try:
            connection = _connect(path, busy_timeout_s)
            try:
                migrate(connection, path)
            except BaseException:
                connection.close()
                raise
        except _FAILURES as error:
            raise _translate(error, path) from error
        opened = cls(path, connection)
        opened._finish_wiping()
        return opened

    def close(self) -> None:
        with self._access as connection:
            try:
                if not self._is_closed:
                    self._finish_wiping()
            finally:
                self._is_closed = True
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def count_changes(self) -> tuple[int, int]:
        """Numbers that are others after each change to the file, by this process or another."""
        with self._read() as connection:
            (others,) = connection.execute("PRAGMA data_version").fetchone()
            return others, connection.total_changes

    def wipe(self) -> bool:
        """Write the file anew, without what was deleted from it.

        That took 0.6 s for 96 MB, and 6 s for 386 MB, on two busy cores.

        False where another process reads or writes, or the disk is full: then the file, or its log,
        still holds what was deleted, until it is next opened or closed and nobody is in the way.
        """
        with self._access as connection:
            try:
                connection.execute("VACUUM")
                (busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy:
                    return False
                connection.execute(f"PRAGMA user_version = {_WIPED}")
            except sqlite3.OperationalError as error:
                if _code(error) not in _IN_THE_WAY:
                    raise
                return False
            return True

    def _finish_wiping(self) -> None:
        """Wipe the file where it was left unwiped, unless somebody is in the way."""
        with self._access as connection:
            (mark,) = connection.execute("PRAGMA user_version").fetchone()
            if mark == _UNWIPED:
                (patience,) = connection.execute("PRAGMA busy_timeout").fetchone()
                connection.execute("PRAGMA busy_timeout = 0")
                self.wipe()
                connection.execute(f"PRAGMA busy_timeout = {patience}")

    def _read(self) -> _Access:
        return self._access

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._access as connection, transaction(connection):
            yield connection


class _Access:
    """The connection, for one thread at a time, which may ask again within.

    What SQLite raises becomes StoreError or ResourceError with a hint.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._lock = threading.RLock()

    def __enter__(self) -> sqlite3.Connection:
        self._lock.acquire()
        return self._connection

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._lock.release()
        if isinstance(error, _FAILURES):
            raise _translate(error, self._path) from error


def read_secret(path: Path) -> bytes:
    """Read a key of 32 random bytes from a file of its own, which is made where it is missing.

    ResourceError if it can be neither read nor written.
    """
    try:
        if not path.exists():
            part = path.with_suffix(f".{secrets.token_hex(8)}")
            with open_new_private(part, "xb") as file:
                file.write(secrets.token_bytes(_SECRET_BYTES))
            with suppress(FileExistsError):  # another process made one meanwhile
                os.link(part, path)
            part.unlink()
        found = path.read_bytes()
    except OSError as error:
        raise ResourceError(
            f"cannot read or write {path} ({error.strerror})",
            hint="make the file and its folder writable, or set MGL_HOME to another folder",
        ) from error
    if len(found) != _SECRET_BYTES:
        raise ResourceError(f"{path} is damaged", hint="delete it: another is made")
    return found


def mark_unwiped(connection: sqlite3.Connection) -> None:
    """Mark, within a transaction that deletes, that the file is to be wiped after it."""
    connection.execute(f"PRAGMA user_version = {_UNWIPED}")


def _connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection in autocommit mode, usable from any thread (the caller locks).

    SQLite gives the files beside the database the database's own permissions.
    """
    with suppress(OSError):  # SQLite says what is wrong
        create_private(path)
    restrict(*(path.with_name(f"{path.name}-{part}") for part in ("wal", "shm", "journal")))
    connection = sqlite3.connect(
        path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        _enter_wal(connection, busy_timeout_s)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _enter_wal(connection: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Begin to write ahead. SQLite itself does not wait while another process recovers the log, or
    closes the database as its last."""
    until = time.monotonic() + busy_timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(0.01)
        else:
            return


def _code(error: sqlite3.Error) -> int:
    """SQLite's code; errors that Python itself raises (a closed connection, for one) have none."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code


def _translate(error: sqlite3.Error | UnicodeEncodeError, path: Path) -> MglError:
    if isinstance(error, UnicodeEncodeError):
        return StoreError(
            f"cannot store text that is not Unicode ({error.reason})",
            hint="give names and options as valid UTF-8",
        )
    code = _code(error)
    if code == sqlite3.SQLITE_FULL:
        return ResourceError(
            f"no space left to write {path}",
            hint="free some disk space and run the same command again: finished work is kept",
        )
    if code == sqlite3.SQLITE_IOERR:
        return ResourceError(
            f"cannot read or write {path} ({error})",
            hint="check the disk and its free space, then run the same command again",
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return ResourceError(
            f"cannot open {path} for writing ({error})",
            hint="make the file and its folder writable, or set MGL_HOME to another folder",
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(
            f"{path} is damaged or not a database ({error})",
            hint="move it away (or restore a copy); mgl makes a new one",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            f"{path} is locked by another process that writes",
            hint="wait until the other mgl has finished, or stop it, and run the command again",
        )
    return StoreError(
        f"{path} refused a change ({error})",
        hint="run `mgl doctor`; if the file is damaged, move it away",
    )
