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


def test_tables_go_to_stdout(mgl: Mgl, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without drawing plots, which takes most of the time."""
    monkeypatch.delattr("mgl.evaluation.report.report.draw_plots")
    done = mgl("report", run, "--price", "1,2", code=0)
    assert done.stdout.startswith("locomo: In exact match no two methods differ")
    assert "33.3 [6.1, 79.2] · n 3 · 1 failed" in done.stdout
    assert "MONEY" in done.stdout
    refused = mgl("report", run, "--price", "cheap", code=2)
    assert "[PROFILE=]IN,OUT" in refused.stderr


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.html", "<!doctype html>"), ("r.csv", "chapter,table,row,")],
)
def test_the_ending_of_out_says_the_format(mgl: Mgl, run: Path, name: str, begins: str) -> None:
    out = run.parent / name
    mgl("report", run, "--out", out, code=0)
    assert out.read_text().startswith(begins)
    assert (run.parent / "r-items" / "c0-0.html").exists() == (out.suffix == ".html")


def test_answers_are_given_by_an_option(mgl: Mgl, run: Path) -> None:
    answers = run.parent / "answers.csv"
    done = mgl("report", run, "--answers", answers, code=0)
    assert done.stdout == ""
    assert answers.read_text().count("\n") == 7


def test_what_is_no_run_and_what_cannot_be_written_is_refused(mgl: Mgl, run: Path) -> None:
    mgl("report", run, "--out", run.parent / "r.txt", code=2)
    mgl("report", run.parent, code=3)
    for name in ("r.csv", "r.html"):
        mgl("report", run, "--out", run.parent / "nowhere" / name, code=5)
    assert not (run.parent / "nowhere").exists()
