from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from tests.evaluation.report.folders import Said, item, method, write_run

Mgl = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    said = {
        f"k-{n}": [Said({"exact_match": 1.0}), Said({"exact_match": 0.0}), Said(None)]
        for n in (1, 2)
    }
    methods = [method(label, "gam", k=n) for n, label in enumerate(said)]
    return write_run(tmp_path / "run", methods, [item(f"q{n}") for n in range(3)], said)


def test_tables_go_to_stdout(mgl: Mgl, run: Path) -> None:
    done = mgl("report", run)
    assert done.exit_code == 0
    assert done.stdout.startswith("locomo: In exact match no two methods are told apart")
    assert "33.3 [6.1, 79.2] · n 3 · 1 failed" in done.stdout


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.html", "<!doctype html>"), ("r.csv", "chapter,table,row,")],
)
def test_the_ending_of_out_says_the_format(mgl: Mgl, run: Path, name: str, begins: str) -> None:
    out = run.parent / name
    assert mgl("report", run, "--out", out).exit_code == 0
    assert out.read_text().startswith(begins)


def test_another_ending_is_refused(mgl: Mgl, run: Path) -> None:
    assert mgl("report", run, "--out", run.parent / "r.txt").exit_code == 2


def test_a_folder_that_is_no_run_ends_with_a_hint(mgl: Mgl, tmp_path: Path) -> None:
    done = mgl("report", tmp_path)
    assert done.exit_code == 3


def test_an_out_that_cannot_be_written_ends_with_a_hint(mgl: Mgl, run: Path) -> None:
    done = mgl("report", run, "--out", run.parent / "nowhere" / "r.csv")
    assert done.exit_code == 5
