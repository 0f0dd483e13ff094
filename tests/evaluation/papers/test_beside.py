"""What stands beside a paper's numbers, worked out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.evaluation.papers.beside import put_beside
from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import Rows, load_suites
from mgl.evaluation.records import BuildRecord, Spent
from tests.evaluation.report.folders import Said, item, method, read_frame, write_run

PAPERS = load_references()
ROWS = Rows(load_suites().values())


def test_ours_is_averaged_as_the_table_that_it_stands_beside(tmp_path: Path) -> None:
    """Table 2's averages are over the series."""
    series = ["friends", "friends", "friends", "theoffice"]
    items = [item(f"q{n}", labels={"series": each}) for n, each in enumerate(series)]
    said = {"gam": [*(Said({"f1_set_amem": one}) for one in (1.0, 1.0, 0.5)), Said(None)]}
    frame = read_frame(
        write_run(
            tmp_path / "run",
            [method("gam")],
            items,
            said,
            benchmark="longdialqa",
            scorers=("f1_set_amem",),
        )
    )
    (found,) = put_beside(frame, PAPERS["gam"].cells("table2"), ROWS.matches)
    assert found.over == "series"
    assert found.ours is not None
    assert found.ours.interval.mean == pytest.approx((2.5 / 3 + 0) / 2)
    assert [cell.value for cell in found.printed] == [12.55, 7.36, 11.86, 11.18], "7B first"


def test_tokens_and_seconds_stand_beside_the_papers(tmp_path: Path) -> None:
    usage = {"extract": Spent(9, 900, 90), "select": Spent(1, 50, 5)}
    builds = [
        BuildRecord("mnemis", "a source", {"entities": Spent(9, 900, 90)}, {"sessions": 3},
                    took={"stages": {"entities": 12.0}})
    ]  # fmt: skip
    said = {"mnemis": [Said({"exact_match": 1.0}, more={"usage": usage})] * 2}
    frame = read_frame(
        write_run(
            tmp_path / "run", [method("mnemis")], [item("q0"), item("q1")], said, builds=builds
        )
    )
    found = {
        (one.part, one.metric.name): (one.ours.interval.mean if one.ours else None, one.printed)
        for one in put_beside(frame, PAPERS["mnemis"].cells("table3"), ROWS.matches)
    }
    base, selected = "Base Graph Ingestion", "Global Selection"
    assert found[base, "stage_input_tokens"][0] == 900
    assert found[base, "stage_seconds"][0] == 12.0
    assert found[selected, "stage_input_tokens"][0] == 100
    assert found[base, "stage_input_tokens"][1][0].value == 3.87e7


def test_every_printed_cost_has_a_metric_of_ours() -> None:
    """But GAM's Table 10, where a conversation is asked as it grows, and the lengths of texts."""
    apart = {("gam", "table10"), ("hgmem", "table4"), ("mindgraph", "section4.1")}
    for paper in PAPERS.values():
        for cell in paper.cells():
            if cell.unit in ("tokens", "seconds", "correlation", "nodes"):
                assert cell.scorer is not None or (paper.name, cell.table) in apart
