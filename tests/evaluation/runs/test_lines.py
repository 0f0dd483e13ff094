"""The file of a run's rows, when there is no room for one."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mgl.errors import UsageError
from mgl.evaluation.runs.lines import JsonLines


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
    with room_for(40), pytest.raises(UsageError, match="cannot be written"):
        lines.add({"id": "q1", "answer": "long " * 40})
    lines.add({"id": "q2"})
    assert JsonLines(lines.path).rows == lines.rows == [{"id": "q0"}, {"id": "q2"}]
