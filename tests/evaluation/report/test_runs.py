from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mgl.errors import InputError
from mgl.evaluation.records import Record
from mgl.evaluation.report.runs import group_runs, read_run
from mgl.evaluation.runs.folder import RunFolder
from tests.evaluation.report.folders import Said, item, method, write_run

SAID = {"a": [Said({"exact_match": 1.0}), Said(None)]}


def run(folder: Path, **options: Any) -> Path:
    said = options.pop("said", SAID)
    return write_run(folder, [method("a")], [item("q0"), item("q1")], said, **options)


def test_what_is_missing_or_foreign_is_left_out_and_said(tmp_path: Path) -> None:
    folder = run(tmp_path / "run", said={"a": SAID["a"][:1]}, ended=None)
    log = RunFolder(folder).log
    for stranger in (Record("b", item("q0")), Record("a", item("q9"))):
        log.add_answer(stranger)
    found = read_run(folder)
    assert len(found.records) == 1
    unfinished, foreign = found.notes
    assert unfinished.startswith("run is not finished: it has 1 of 2 answers")
    assert "2 records of no method or item" in foreign


def test_runs_of_the_same_items_stand_in_one_table(tmp_path: Path) -> None:
    (found,) = group_runs([read_run(run(tmp_path / name)) for name in ("one", "two")])
    assert [each.label for each in found.series] == ["a (one)", "a (two)"]
    assert found.apart == ""
    with pytest.raises(InputError):
        group_runs([read_run(tmp_path / "one"), read_run(run(tmp_path / "more" / "one"))])
