from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mgl.errors import StoreError
from mgl.store import Store
from mgl.store.migrations import MIGRATIONS, Migration, migrate


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a database of the present schema."""
    Store.open(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        yield opened


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def test_only_what_is_new_is_applied_and_recorded_with_its_time(
    path: Path, connection: sqlite3.Connection
) -> None:
    added = Migration("0099_notes", ("CREATE TABLE notes (id TEXT)",))
    for _ in range(2):
        migrate(connection, path, (*MIGRATIONS, added))
    rows = connection.execute("SELECT name, applied_at FROM migrations").fetchall()
    assert [name for name, _ in rows] == [*(one.name for one in MIGRATIONS), "0099_notes"]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", at) for _, at in rows)
    assert "notes" in tables(connection)


def test_a_migration_that_fails_leaves_nothing_of_itself(
    path: Path, connection: sqlite3.Connection
) -> None:
    broken = Migration("0099_broken", ("CREATE TABLE half (id TEXT)", "CREATE TABLE half (x)"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, (*MIGRATIONS, broken))
    assert "half" not in tables(connection)
    Store.open(path).close()


def test_a_database_of_a_newer_mgl_is_left_alone(
    path: Path, connection: sqlite3.Connection
) -> None:
    connection.execute("INSERT INTO migrations (name) VALUES ('0099_future')")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="0099_future"):
        Store.open(path)
    assert path.read_bytes() == before
