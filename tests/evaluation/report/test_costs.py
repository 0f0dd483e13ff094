"""Costs, sizes and tool use, worked by hand."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.evaluation.papers.references import load_references
from mgl.evaluation.records import BuildRecord
from mgl.evaluation.report.costs import ToolUse, size_table
from mgl.evaluation.report.data import Cell, Report, Table
from mgl.evaluation.report.report import make_report
from mgl.evaluation.report.runs import group_runs, read_run
from mgl.evaluation.report.writers import to_csv, to_html, to_markdown
from tests.evaluation.report.folders import Said, item, method, write_run

TITLE = "Tool use by graph size"
LOOKUP = "lookup_source(node_id='ann')"
INDEX = "subgraph_summary(mode='index')"
DETAIL = "subgraph_summary(mode='detail', subgraph_id=1)"


def said(nodes: int, *trace: str) -> Said:
    return Said({"exact_match": 1.0}, more={"memory": {"nodes": nodes}, "trace": trace})


ANSWERS = [
    said(10, LOOKUP, LOOKUP),
    said(49, LOOKUP, "dropped citation of lookup_source(x): no such node"),
    said(50),
    said(149, INDEX, DETAIL, DETAIL, LOOKUP, "reached 4 tool rounds"),
    said(150, DETAIL, LOOKUP, LOOKUP, LOOKUP),
    Said(None),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    items = [item(f"q{place}") for place in range(len(ANSWERS))]
    folder = write_run(
        tmp_path_factory.mktemp("runs") / "run",
        [method("graph", "mindgraph"), method("direct")],
        items,
        {"graph": ANSWERS, "direct": [said(60, LOOKUP) for _ in items]},
    )
    return make_report([read_run(folder)], load_references().values())


def tables(report: Report) -> dict[str, Table]:
    return {each.title: each for each in report.chapters[0].blocks if isinstance(each, Table)}


def told(report: Report, quantity: str) -> dict[str, Cell]:
    table = tables(report)[TITLE]
    (row,) = (row for row in table.rows if row[1].text == quantity)
    return dict(zip(table.head, row, strict=True))


def ours(report: Report, quantity: str) -> list[str]:
    row = told(report, quantity)
    return [row[f"{size} nodes"].text for size in ("fewer than 50", "50 to 150", "150 or more")]


def test_each_answer_that_did_not_fail_is_of_one_size(report: Report) -> None:
    assert ours(report, "answers") == ["2", "2", "1"]
    assert {row[0].text for row in tables(report)[TITLE].rows} == {"graph"}


def test_what_answers_used_is_told_by_size(report: Report) -> None:
    assert ours(report, "median nodes of the graph") == ["29.5", "99.5", "150"]
    assert ours(report, "uses summaries, %") == ["0.0", "50.0", "100.0"]
    assert ours(report, "median lookups") == ["1.5", "0.5", "3"]
    assert ours(report, "median index calls") == ["0", "0.5", "0"]
    assert ours(report, "median detail calls") == ["0", "1", "1"]
    share = told(report, "uses summaries, %")["50 to 150 nodes"]
    assert (share.beside, share.interval) == ("n 2", "[9.5, 90.5]")


def test_the_papers_numbers_stand_beside_with_their_model(report: Report) -> None:
    lookups, summaries = told(report, "median lookups"), told(report, "uses summaries, %")
    assert [cell.text for head, cell in lookups.items() if "print" in head] == ["4", "9", "~12"]
    assert [cell.text for head, cell in summaries.items() if "print" in head] == ["–", "42%", "67%"]
    assert lookups["150 or more, in print"].beside == "gpt-5.4"
    assert "In print: mindgraph, §5.4, on longreason" in tables(report)[TITLE].notes[1]


def test_every_format_has_the_table_and_keeps_print_and_ours_apart(report: Report) -> None:
    line = "| graph | median lookups | 1.5 | 4 (gpt-5.4) | 0.5 | 9 (gpt-5.4) | 3 | ~12 (gpt-5.4) |"
    assert line in to_markdown(report).splitlines()
    assert f"<h3>{TITLE}</h3>" in to_html(report)
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    found = {
        (row["kind"], row["model"], row["value"])
        for row in rows
        if (row["quantity"], row["part"]) == ("lookups", "50 to 150 nodes")
    }
    assert found == {("tools", method("graph").model, "0.5"), ("print", "gpt-5.4", "9.0")}


def test_without_answers_over_a_graph_there_is_no_such_table(tmp_path: Path) -> None:
    failed = {"graph": [Said(None)], "direct": [said(60, LOOKUP)]}
    methods = [method("graph", "mindgraph"), method("direct")]
    found = make_report([read_run(write_run(tmp_path / "run", methods, [item("q")], failed))])
    assert TITLE not in tables(found)


def test_lookups_are_plotted_by_size_where_there_are_any(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (plot,) = (each for each in report.plots() if each.title == "Lookups against graph size")
    assert plot.about == "After MindGraph §5.4. 5 answers."
    none = {"graph": [said(10), said(60)]}
    run = write_run(tmp_path / "run", [method("graph", "mindgraph")], [item("p"), item("q")], none)
    assert not list(make_report([read_run(run)]).plots())


@given(st.lists(st.sampled_from([LOOKUP, INDEX, DETAIL, "reached 2 tool rounds"])))
def test_each_call_is_counted_once(trace: list[str]) -> None:
    used = ToolUse.of(7, trace)
    assert used == ToolUse(7, *(trace.count(each) for each in (LOOKUP, INDEX, DETAIL)))


def with_points(hyperedges: int, joined: int) -> Said:
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
            "points": [
                with_points(1, 5),
                with_points(3, 7),
                Said({"exact_match": 0.0}),
                Said(None),
            ],
            "direct": [Said({"exact_match": 1.0})] * 4,
        },
        builds=[BuildRecord("points", "a source", {}, {"nodes": 40, "edges": 9, "chunks": 2})],
    )
    (group,) = group_runs([read_run(run)])
    points, direct = ([cell.text for cell in row] for row in size_table(group).rows)
    assert points[:5] == ["points", "40", "9", "2", "3.00"]
    assert direct[4] == "–"
