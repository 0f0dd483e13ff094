"""Records as JSON, and the files that hold them."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.records import Record, RunLog, item_from_json, item_to_json
from mgl.types import Question


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may grow beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def record(id: str, answer: str = "Zürich") -> Record:
    return Record("m", item_to_json(Item(id, "s", Question("Where?"))), answer=answer)


def test_a_row_that_had_no_room_leaves_the_others_whole(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "rows.jsonl")
    log.add_answer(record("q0"))
    with room_for(log.path.stat().st_size + 40), pytest.raises(UsageError):
        log.add_answer(record("q1"))
    log.add_answer(record("q2"))
    assert RunLog(log.path).answers == log.answers
    assert [id for _, id, _ in log.answers] == ["q0", "q2"]


def test_half_a_character_is_kept_in_a_file_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    RunLog(path).add_answer(record("q0", "Z\ud800"))
    assert path.read_text(encoding="utf-8")
    assert RunLog(path).answers["m", "q0", 0].answer == "Z\ud800"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(cut=st.integers(0, 2000))
def test_a_run_killed_at_any_byte_resumes(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.unlink(missing_ok=True)
    records = [record(f"q{number}") for number in range(3)]
    for one in records:
        RunLog(path).add_answer(one)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    resumed = RunLog(path)
    for one in records[len(resumed.answers) :]:
        resumed.add_answer(one)
    assert path.read_bytes() == whole
    assert [*RunLog(path).answers.values()] == records


@pytest.mark.parametrize(
    "question",
    [Question("Why?"), Question("Why?", form="long"), Question("Why?", datetime(2024, 5, 8), "Bo")],
)
def test_an_item_is_the_same_after_its_json(question: Question) -> None:
    item = Item("q", "s", question, golds=("Because.",), labels={"breadth": "global"})
    assert item_from_json(item_to_json(item)) == item
