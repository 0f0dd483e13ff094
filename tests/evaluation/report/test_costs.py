"""The table of sizes: of what is shared, and of what each question has of its own."""

from __future__ import annotations

from pathlib import Path

from mgl.evaluation.records import BuildRecord
from mgl.evaluation.report.costs import size_table
from mgl.evaluation.report.runs import group_runs, read_run
from tests.evaluation.report.folders import Said, item, method, write_run


def said(hyperedges: int, joined: int) -> Said:
    own = {"nodes": 3, "hyperedges": hyperedges, "hyperedge_nodes": joined}
    return Said({"exact_match": 1.0}, more={"memory": own})


def test_hyperedges_are_those_of_the_questions_and_nodes_those_of_the_shared_graph(
    tmp_path: Path,
) -> None:
    run = write_run(
        tmp_path / "run",
        [method("points", "hgmem"), method("direct")],
        [item(f"q{place}") for place in range(4)],
        {
            "points": [said(1, 5), said(3, 7), Said({"exact_match": 0.0}), Said(None)],
            "direct": [Said({"exact_match": 1.0})] * 4,
        },
        builds=[BuildRecord("points", "a source", {}, {"nodes": 40, "edges": 9, "chunks": 2})],
    )
    (group,) = group_runs([read_run(run)])
    points, direct = ([cell.text for cell in row] for row in size_table(group).rows)
    assert points[:5] == ["points", "40", "9", "2", "3.00"]
    assert direct[4] == "–"
