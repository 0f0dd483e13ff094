"""What stands beside a paper's numbers, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.reproducing import Beside, compare_run
from mgl.evaluation.papers.suites import Method, Run
from mgl.evaluation.report.runs import group_runs, read_run
from tests.evaluation.report.folders import Said, item, method, write_run

PAPER = load_references()["gam"]


def beside(folder: Path, benchmark: str, items: list, said: dict, *scorers: str) -> list[Beside]:
    """Ours beside Table 2, whose averages are over the series."""
    run = Run(
        benchmark=benchmark,
        scorers=scorers,
        methods=(
            Method(label="gam", memory="gam", row="Ours"),
            Method(label="own", memory="direct"),
        ),
    )
    methods = [method(one, one if one == "gam" else "direct") for one in said]
    path = write_run(folder, methods, items, said, benchmark=benchmark, scorers=scorers)
    (group,) = group_runs([read_run(path)])
    return compare_run(PAPER.table("table2"), run, PAPER, group)


def test_ours_is_averaged_as_the_table_that_it_stands_beside(tmp_path: Path) -> None:
    series = ["friends", "friends", "friends", "theoffice"]
    items = [
        item(f"q{place}", "a kind" if place else "another", labels={"series": each})
        for place, each in enumerate(series)
    ]
    scores = [Said({"f1_set_amem": one}) for one in (1.0, 1.0, 0.5)]
    said = {"gam": [*scores, Said(None)], "own": [*scores, Said(None)]}
    gam, own = beside(tmp_path / "run", "longdialqa", items, said, "f1_set_amem")
    assert (gam.averaging, own.averaging) == ("categories", "categories")
    assert gam.ours.mean == own.ours.mean == pytest.approx((2.5 / 3 + 0) / 2)
    assert (gam.ours.n, gam.ours.failed) == (4, 1)
    assert {cell.averaging for cell in gam.paper} == {"categories"}
    assert own.paper == ()


def test_what_claims_have_together_and_what_was_not_measured(tmp_path: Path) -> None:
    claims = [("p1", "true"), ("p1", "false"), ("p2", "true"), ("p2", "false")]
    items = [
        item(f"c{n}", pair=pair, golds=[gold], evidence=["here"])
        for n, (pair, gold) in enumerate(claims)
    ]
    right = {"gam": [Said({}, answer=one) for one in ("True", "False", "True", "True")]}
    found = beside(tmp_path / "run", "nocha", items, right, "pair_accuracy", "evidence_recall@10")
    pairs, recall = found
    assert (pairs.ours.mean, pairs.ours.n) == (0.5, 2)
    assert recall.ours is None, "what retrieves nothing has no recall of 0"
