"""The file of a store: opened, closed, read and written, one call at a time.

One connection behind a lock: safe from several threads. Every failure of SQLite or the disk is a
StoreError or ResourceError. It does not know what the tables hold.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from mgl.errors import ResourceError
from mgl.store.connection import connect, store_errors, transaction
from mgl.store.migrations import migrate

__all__ = ["DatabaseFile"]

_BUSY_TIMEOUT_S = 10.0


class DatabaseFile:
    """An open database; a context manager that closes it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path, *, busy_timeout_s: float = _BUSY_TIMEOUT_S) -> Self:
        """Open or create the database at ``path`` and bring it to the current schema.

        ``busy_timeout_s`` is how long a write waits for another process that writes. Raises
        StoreError (damaged, locked, written by a newer mgl) or ResourceError (not writable).
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ResourceError(
                f"cannot create the folder {path.parent} ({error.strerror})",
                hint="set MGL_HOME to a folder that you can write to",
            ) from error
        with store_errors(path):
            connection = connect(path, busy_timeout_s)
            try:
                migrate(connection, path)
            except BaseException:
                connection.close()
                raise
        return cls(path, connection)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        with self._lock, store_errors(self.path):
            yield self._connection

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._lock, store_errors(self.path), transaction(self._connection):
            yield self._connection
