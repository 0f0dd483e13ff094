from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.llm.base import Completion, Message, Request, TokenUsage
from mgl.llm.calls import CallRecord
from mgl.store import Store
from mgl.store.pace import Pace

DONE = Completion("Paris", "stop", TokenUsage(100, 10))
DAY = "2026-01-01T10:00:"


def call(seconds: float, *, stage: str = "extract", done: Completion | None = DONE) -> CallRecord:
    request = Request((Message("user", "Where?"),))
    outcome = "timeout" if done is None else "ok"
    return CallRecord("key", stage, "m", request, done, outcome, None, seconds)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[Store, sqlite3.Connection]]:
    path = tmp_path / "mgl.sqlite"
    with Store.open(path) as store:
        connection = sqlite3.connect(path, isolation_level=None)
        yield store, connection
        connection.close()


def at(connection: sqlite3.Connection, *ends: str) -> None:
    for number, end in enumerate(ends, 1):
        sql = "UPDATE llm_calls SET created_at = ? WHERE number = ?"
        connection.execute(sql, (f"{DAY}{end}Z" if len(end) < 10 else end, number))


def test_a_model_that_was_never_asked_has_no_pace(written: tuple[Store, object]) -> None:
    store, _ = written
    assert store.pace("m", "extract") is None
    store.add_call(call(1.0, stage="answer"), None)
    store.add_call(call(1.0, done=None), None)
    assert store.pace("m", "extract") is None
    assert store.pace("other", "answer") is None


def test_calls_after_each_other_add_up(written: tuple[Store, sqlite3.Connection]) -> None:
    store, connection = written
    for _ in range(3):
        store.add_call(call(2.0), None)
    at(connection, "02.000", "04.000", "06.000")
    assert store.pace("m", "extract") == Pace(3, 300, 30, pytest.approx(6.0, abs=0.01))


def test_calls_side_by_side_count_once(written: tuple[Store, sqlite3.Connection]) -> None:
    store, connection = written
    for _ in range(4):
        store.add_call(call(8.0), None)
    at(connection, "08.000", "08.000", "08.500", "16.000")
    found = store.pace("m", "extract")
    assert found is not None
    assert found.seconds == pytest.approx(16.0, abs=0.01)


def test_the_time_between_sittings_does_not_count(
    written: tuple[Store, sqlite3.Connection],
) -> None:
    store, connection = written
    store.add_call(call(2.0), None)
    store.add_call(call(3.0), None)
    at(connection, "02.000", "2026-02-01T10:00:00.000Z")
    found = store.pace("m", "extract")
    assert found is not None
    assert found.seconds == pytest.approx(5.0, abs=0.01)


def test_what_failed_costs_time_and_is_no_call(
    written: tuple[Store, sqlite3.Connection],
) -> None:
    store, connection = written
    store.add_call(call(5.0, done=None), None)
    store.add_call(call(2.0), None)
    at(connection, "05.000", "07.000")
    assert store.pace("m", "extract") == Pace(1, 100, 10, pytest.approx(7.0, abs=0.01))
