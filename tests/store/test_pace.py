from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl.llm.base import Completion, Message, Request, TokenUsage
from mgl.llm.calls import CallRecord
from mgl.store import Store
from mgl.store.calls import Pace

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


def test_a_model_that_was_never_asked_has_no_pace(written: tuple[Store, object]) -> None:
    store, _ = written
    assert store.pace("m", "extract") is None
    store.add_call(call(1.0, stage="answer"), None)
    store.add_call(call(1.0, done=None), None)
    assert store.pace("m", "extract") is None
    assert store.pace("other", "answer") is None


@pytest.mark.parametrize(
    ("seconds", "ends", "wall"),
    [
        ([2, 2, 2], ["02.000", "04.000", "06.000"], 6),  # one after another
        ([8, 8, 8, 8], ["08.000", "08.000", "08.500", "16.000"], 16),  # side by side
        ([2, 3], ["02.000", "2026-02-01T10:00:00.000Z"], 5),  # in two sittings
        ([5, 2], ["05.000", "07.000"], 7),
    ],
)
def test_the_wall_time_of_calls(
    written: tuple[Store, sqlite3.Connection], seconds: list[float], ends: list[str], wall: float
) -> None:
    store, connection = written
    for number, (each, end) in enumerate(zip(seconds, ends, strict=True), 1):
        store.add_call(call(each, done=None if each == 5 else DONE), "mem_1")
        time = end if "T" in end else f"{DAY}{end}Z"
        connection.execute("UPDATE llm_calls SET created_at = ? WHERE number = ?", (time, number))
    done = len(seconds) - seconds.count(5)
    expected = Pace(done, 100 * done, 10 * done, pytest.approx(wall, abs=0.01))
    assert store.pace("m", "extract") == expected
