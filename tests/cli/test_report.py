from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Mgl
from tests.evaluation.report.folders import Said, item, method, write_run


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
    assert done.stdout.startswith("locomo: In exact match no two methods differ")
    assert "33.3 [6.1, 79.2] · n 3 · 1 failed" in done.stdout


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.html", "<!doctype html>"), ("r.csv", "chapter,table,row,")],
)
def test_the_ending_of_out_says_the_format(mgl: Mgl, run: Path, name: str, begins: str) -> None:
    out = run.parent / name
    assert mgl("report", run, "--out", out).exit_code == 0
    assert out.read_text().startswith(begins)
    assert (run.parent / "r-items" / "c0-0.html").exists() == (out.suffix == ".html")


def test_answers_and_prices_are_given_by_options(mgl: Mgl, run: Path) -> None:
    answers = run.parent / "answers.csv"
    done = mgl("report", run, "--answers", answers)
    assert (done.exit_code, done.stdout) == (0, "")
    assert answers.read_text().count("\n") == 7
    priced = mgl("report", run, "--price", "1,2")
    assert "MONEY" in priced.stdout
    refused = mgl("report", run, "--price", "cheap")
    assert (refused.exit_code, "[PROFILE=]IN,OUT" in refused.stderr) == (2, True)


def test_what_is_no_run_and_what_cannot_be_written_is_refused(mgl: Mgl, run: Path) -> None:
    assert mgl("report", run, "--out", run.parent / "r.txt").exit_code == 2
    assert mgl("report", run.parent).exit_code == 3
    for name in ("r.csv", "r.html"):
        assert mgl("report", run, "--out", run.parent / "nowhere" / name).exit_code == 5
    assert not (run.parent / "nowhere").exists()
