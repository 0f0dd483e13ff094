from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from mgl.errors import StoreError
from mgl.store import Store
from mgl.store.schema import MIGRATIONS, NAME, SCHEMA


def test_the_tables_are_made_once_and_their_name_is_kept(path: Path) -> None:
    for _ in range(2):
        Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM migrations").fetchall()
        assert names == [(name,) for name in (NAME, *MIGRATIONS)]


def test_a_database_of_before_is_brought_up(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute("INSERT INTO migrations (name) VALUES (?)", (NAME,))
        connection.commit()
    with Store.open(path) as store:
        assert store.find_follows("none") == {}


def test_a_database_of_a_newer_mgl_is_left_alone(path: Path) -> None:
    Store.open(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO migrations (name) VALUES ('0099_future')")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="0099_future"):
        Store.open(path)
    assert path.read_bytes() == before
