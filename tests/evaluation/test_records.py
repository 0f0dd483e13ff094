"""Records as JSON, and the files that hold them."""

from __future__ import annotations

import json
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
from mgl.evaluation.records import JsonLines, item_from_json, item_to_json
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


def test_a_row_that_had_no_room_leaves_the_others_whole(tmp_path: Path) -> None:
    lines = JsonLines(tmp_path / "rows.jsonl")
    lines.add({"id": "q0"})
    with room_for(40), pytest.raises(UsageError):
        lines.add({"id": "q1", "answer": "long " * 40})
    lines.add({"id": "q2"})
    assert JsonLines(lines.path).rows == lines.rows == [{"id": "q0"}, {"id": "q2"}]


def test_half_a_character_is_kept_in_a_file_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    JsonLines(path).add({"id": "q0", "answer": "Z\ud800"})
    assert path.read_text(encoding="utf-8")
    assert JsonLines(path).rows == [{"id": "q0", "answer": "Z\ud800"}]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(cut=st.integers(0, 400))
def test_a_run_killed_at_any_byte_resumes(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "rows.jsonl"
    path.unlink(missing_ok=True)
    rows = [{"id": f"q{number}", "answer": "Zürich"} for number in range(3)]
    for row in rows:
        JsonLines(path).add(row)
    whole = path.read_bytes()
    path.write_bytes(whole[:cut])
    resumed = JsonLines(path)
    for row in rows[len(resumed.rows) :]:
        resumed.add(row)
    assert path.read_bytes() == whole
    assert [json.loads(line) for line in whole.splitlines()] == rows


@pytest.mark.parametrize(
    "question",
    [Question("Why?"), Question("Why?", form="long"), Question("Why?", datetime(2024, 5, 8), "Bo")],
)
def test_an_item_is_the_same_after_its_json(question: Question) -> None:
    item = Item("q", "s", question, golds=("Because.",), labels={"breadth": "global"})
    assert item_from_json(item_to_json(item)) == item
