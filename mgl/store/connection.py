"""One SQLite connection as the store wants it, and SQLite's failures in mgl's own error tree.

Write-ahead log, so that readers never wait for the writer; foreign keys on; a bounded wait for
another process that writes. A process that is killed loses the transaction it was in and nothing
else; a machine that loses power may lose the last committed ones, never the file. What is deleted
or overwritten is overwritten in the file, too, and gone from it once the log is taken in.

It does not know the schema.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mgl.errors import MglError, ResourceError, StoreError

__all__ = ["connect", "store_errors", "transaction"]


def connect(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """A connection in autocommit mode, usable from any thread (the caller locks)."""
    connection = sqlite3.connect(
        path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA secure_delete = ON")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing: commits at the end, rolls back whatever interrupts it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into StoreError or ResourceError with a hint."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate(error, path) from error
    except UnicodeEncodeError as error:
        raise StoreError(
            f"cannot store text that is not Unicode ({error.reason})",
            hint="give names and options as valid UTF-8",
        ) from error


def _translate(error: sqlite3.Error, path: Path) -> MglError:
    # Errors that Python itself raises (a closed connection, for one) carry no SQLite code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
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
