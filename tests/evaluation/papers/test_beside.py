"""What stands beside a paper's numbers, worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mgl.evaluation.papers.beside import SuiteRows, put_beside
from mgl.evaluation.papers.references import PrintedCell, load_references
from mgl.evaluation.papers.suites import load_suites
from mgl.evaluation.records import BuildRecord, Spent
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.runs.manifest import Method
from mgl.memories.options import choose_kind
from tests.evaluation.report.folders import SESSION, Said, item, make_frame, method

PAPERS = load_references()
SUITES = list(load_suites().values())
ROWS = SuiteRows(SUITES)
Found = tuple[float | None, tuple[PrintedCell, ...]]


def find_beside(
    frame: Frame, paper: str, table: str, rows: SuiteRows = ROWS
) -> dict[tuple[str, str, str], Found]:
    """Ours and what is printed, by method, part and metric."""
    return {
        (one.label, one.part, one.metric.name): (
            one.ours.interval.mean if one.ours else None,
            one.printed,
        )
        for one in put_beside(frame, PAPERS[paper].cells(table), rows)
    }


def test_ours_is_averaged_as_the_table_that_it_stands_beside(tmp_path: Path) -> None:
    """Table 2's averages are over the series."""
    series = ["friends", "friends", "friends", "theoffice"]
    items = [item(f"q{n}", labels={"series": each}) for n, each in enumerate(series)]
    said = {"gam": [*(Said({"f1_set_amem": one}) for one in (1.0, 1.0, 0.5)), Said(None)]}
    options: dict[str, Any] = {"benchmark": "longdialqa", "scorers": ("f1_set_amem",)}
    frame = make_frame(tmp_path, items, said, **options)
    (found,) = put_beside(frame, PAPERS["gam"].cells("table2"), ROWS)
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

    def put(concurrency: int) -> dict[tuple[str, str, str], Found]:
        options: dict[str, Any] = {
            "builds": builds,
            "sessions": (SESSION.model_copy(update={"concurrency": concurrency}),),
        }
        items = [item("q0"), item("q1")]
        frame = make_frame(tmp_path / str(concurrency), items, said, **options)
        return find_beside(frame, "mnemis", "table3")

    found = put(1)
    base, selected = ("mnemis", "Base Graph Ingestion"), ("mnemis", "Global Selection")
    assert found[*base, "stage_input_tokens"][0] == 900
    assert found[*base, "stage_seconds"][0] == 12.0
    assert found[*selected, "stage_input_tokens"][0] == 100
    assert found[*base, "stage_input_tokens"][1][0].value == 3.87e7
    assert (*base, "stage_seconds") not in put(8), "items that waited for one another took longer"


def test_hgmems_two_kinds_of_queries_stand_apart(tmp_path: Path) -> None:
    (suite,) = (one for one in SUITES if one.name == "hgmem")
    run = suite.entry("table3").runs[1]
    kinds = ["primitive", "primitive", "sense-making"]
    items = [item(f"q{n}", labels={"queries": kind}) for n, kind in enumerate(kinds)]
    scores = [Said({"claim_accuracy": score}) for score in (1.0, 0.0, 1.0)]
    methods = [method(one.label, one.memory, **one.settings) for one in run.methods]
    said = {one.label: scores for one in methods}
    options: dict[str, Any] = {"benchmark": "nocha", "scorers": ("claim_accuracy",)}
    frame = make_frame(tmp_path, items, said, methods, **options)
    found = {
        (label, part): (ours, printed[0].value)
        for (label, part, metric), (ours, printed) in find_beside(
            frame, "hgmem", "table3", SuiteRows([suite])
        ).items()
        if ours is not None and metric == "claim_accuracy"
    }
    assert found == {
        ("hgmem", "queries primitive"): (0.5, 60.0),
        ("hgmem", "queries sense-making"): (1.0, 70.0),
        ("without-merging", "queries primitive"): (0.5, 65.0),
        ("without-merging", "queries sense-making"): (1.0, 60.0),
    }


def test_each_size_of_a_growing_conversation_stands_beside_its_row(tmp_path: Path) -> None:
    """Table 10: F1, tokens, seconds and topics after 3, 15 and 27 sessions."""
    items = [item(f"q{n}", labels={"sessions": str(n)}) for n in (3, 15, 27)]
    answered = [
        Said(
            {"f1_set_amem": 0.5},
            more={
                "usage": {"answer": Spent(1, 1000 + n, 9)},
                "memory": {"nodes": n},
                "took": {"own_s": float(n), "replayed": 0, "calls": 1},
            },
        )
        for n in (3, 15, 27)
    ]
    one_by_one = SESSION.model_copy(update={"concurrency": 1})
    options: dict[str, Any] = {"scorers": ("f1_set_amem",), "sessions": (one_by_one,)}
    options["benchmark"] = "locomo-growth"
    frame = make_frame(tmp_path, items, {"gam": answered}, **options)
    found = find_beside(frame, "gam", "table10")
    ours, printed = found["gam", "sessions 15", "f1_set_amem"]
    assert (ours, [cell.value for cell in printed]) == (0.5, [0.57])
    assert found["gam", "sessions 27", "question_seconds"][0] == 27.0
    assert found["gam", "sessions 3", "question_tokens"][0] == 1012
    assert found["gam", "sessions 15", "graph_nodes"][1][0].value == 43


def test_system_2_is_also_counted_over_the_questions_with_results(tmp_path: Path) -> None:
    """Mnemis §3.3.1 averages over the 1,387 of 1,540 questions for which the route finds something.
    A failure counts, since what it would have found is not known."""
    kinds = ["multi-hop", "multi-hop", "multi-hop", "single-hop"]
    asked = {"judge_prompt": "{question} {gold} {answer}"}
    items = [item(f"q{n}", category=kind, **asked) for n, kind in enumerate(kinds)]
    found = {"retrieved": ("D1:1",)}
    answers = [Said({}, 1.0, more=found), Said({}, 0.0), Said(None), Said({}, 1.0, more=found)]
    made = [method("system2", "mnemis", routes="system2"), method("both", "mnemis")]
    said = {"system2": answers, "both": answers}
    frame = make_frame(tmp_path, items, said, made, scorers=(), judge="locomo_mem0")
    shown = {
        (label, part): ours
        for (label, part, _), (ours, _) in find_beside(frame, "mnemis", "table4").items()
        if ours is not None
    }
    assert shown["system2", ""] == pytest.approx(2 / 4)
    assert shown["system2", "with results"] == pytest.approx(2 / 3)
    assert shown["system2", "category multi-hop"] == pytest.approx(1 / 3)
    assert shown["system2", "category multi-hop, with results"] == pytest.approx(1 / 2)
    assert ("both", "with results") not in shown


def test_every_printed_cost_has_a_metric_of_ours() -> None:
    """But GAM's Table 10, where a conversation is asked as it grows, and the lengths of texts."""
    apart = {("gam", "table10"), ("hgmem", "table4"), ("mindgraph", "section4.1")}
    for paper in PAPERS.values():
        for cell in paper.cells():
            if cell.unit in ("tokens", "seconds", "correlation", "nodes"):
                assert cell.scorer is not None or (paper.name, cell.table) in apart


USUAL = ("all-minilm-l6-v2", "all-minilm-l6-v2")


def list_rows(paper: str, table: str, method: Method, retrieval: tuple[str, str]) -> set[str]:
    """The rows of a table, each with its setting, that a method is."""
    return {
        " ".join([cell.method, *cell.setting.values()])
        for cell in PAPERS[paper].cells(table)
        if ROWS.matches(method, retrieval, cell)
    }


def make(memory: str, settings: Mapping[str, Any]) -> Method:
    _, config = choose_kind(memory, settings, lambda: "paper")
    return Method("it", memory, "m", settings, config.model_dump(mode="json"))


def test_each_method_of_a_suite_is_the_row_that_it_names_and_no_other() -> None:
    for name, entry in ((suite.name, entry) for suite in SUITES for entry in suite.entries):
        cells = list(PAPERS[name].cells(entry.id))
        for run in entry.runs:
            retrieval = run.embedder or USUAL[0], run.reranker or USUAL[1]
            for one in run.methods:
                method = make(one.memory, one.settings)
                found = {cell.method for cell in cells if ROWS.matches(method, retrieval, cell)}
                named = {cell.method for cell in cells if cell.method == one.row}
                assert found == named, (entry.id, one.label)


@pytest.mark.parametrize(
    ("paper", "table", "memory", "config", "rows"),
    [
        ("gam", "table3", "gam", {}, {"Ours"}),
        ("gam", "table3", "gam", {"without": "tan", "k": 5}, set()),
        ("gam", "table1", "gam", {"without": "tan"}, set()),
        ("hgmem", "table1", "hgmem", {"merge": False}, set()),
        ("hgmem", "table1", "naive-rag", {}, {"NaiveRAG"}),
        ("hgmem", "table1", "hipporag", {"k": 14}, {"HippoRAG v2"}),
        ("hgmem", "table1", "deep-rag", {"k": 9, "answer_temperature": 0.8}, {"DeepRAG"}),
        ("hgmem", "table3", "hgmem", {}, {"HGMem primitive", "HGMem sense-making"}),
        ("mnemis", "table4", "mnemis", {"preset": "small"}, {"System-1 + System-2"}),
        ("mnemis", "table9", "mnemis", {}, {"System-1 + System-2 10"}),
        ("mnemis", "table5", "mnemis", {}, set()),
        ("mnemis", "table5", "mnemis", {"reranker": "qwen3-reranker-8b"}, {"Qwen3-Reranker-8B"}),
        ("mindgraph", "table2", "mindgraph", {}, {"MindGraph"}),
    ],
)
def test_a_method_is_the_row_of_its_settings(
    paper: str, table: str, memory: str, config: dict[str, Any], rows: set[str]
) -> None:
    settings = {name: value for name, value in config.items() if name != "reranker"}
    retrieval = USUAL[0], config.get("reranker", USUAL[1])
    assert list_rows(paper, table, make(memory, settings), retrieval) == rows
    assert not list_rows("gam", "table3", Method("it", "elsewhere", "m", {}, {}), USUAL)
