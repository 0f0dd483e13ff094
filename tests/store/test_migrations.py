from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from mgl.errors import StoreError
from mgl.store import Store
from mgl.store.migrations import MIGRATIONS, Migration, migrate
from mgl.store.rows import text_digest


def query(path: Path, sql: str) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as opened:
        yield opened


def test_names_are_numbered_in_order_and_recorded_with_their_time(path: Path) -> None:
    names = [migration.name for migration in MIGRATIONS]
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    Store.open(path).close()
    rows = query(path, "SELECT name, applied_at FROM migrations")
    assert [name for name, _ in rows] == names
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", at) for _, at in rows)


def test_an_older_database_gets_only_what_is_new(
    path: Path, connection: sqlite3.Connection
) -> None:
    migrate(connection, path, MIGRATIONS[:1])
    added = Migration("0099_notes", ("CREATE TABLE notes (id TEXT)",))
    migrate(connection, path, (*MIGRATIONS, added))
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert {"documents", "llm_calls", "notes"} <= tables


def test_a_migration_that_fails_leaves_nothing_of_itself(
    path: Path, connection: sqlite3.Connection
) -> None:
    migrate(connection, path)
    broken = Migration("0099_broken", ("CREATE TABLE half (id TEXT)", "CREATE TABLE half (x)"))
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, path, (*MIGRATIONS, broken))
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert "half" not in tables
    Store.open(path).close()


def test_a_database_of_a_newer_mgl_is_left_alone(
    path: Path, connection: sqlite3.Connection
) -> None:
    Store.open(path).close()
    connection.execute("INSERT INTO migrations (name) VALUES ('0099_future')")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="0099_future") as caught:
        Store.open(path)
    assert "upgrade mgl" in caught.value.hint
    assert path.read_bytes() == before


def test_vectors_of_an_older_database_are_kept(path: Path, connection: sqlite3.Connection) -> None:
    before = [migration.name for migration in MIGRATIONS].index("0009_indexes")
    migrate(connection, path, MIGRATIONS[:before])
    vector = np.array([0.6, 0.8], np.float32)
    row = ("m", text_digest("Ann"), vector.tobytes())
    connection.execute("INSERT INTO vectors VALUES (?, ?, ?)", row)
    connection.commit()
    with Store.open(path) as store:
        (kept,) = store.vectors("m", ["Ann"])
    assert kept is not None
    assert kept.tolist() == vector.tolist()
