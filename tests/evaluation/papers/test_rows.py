"""Which printed rows a method of ours is held beside, by the suites that ship."""

from __future__ import annotations

from typing import Any

import pytest

from mgl import registry
from mgl.evaluation.papers.references import load_references
from mgl.evaluation.papers.suites import Rows, load_suites
from mgl.evaluation.runs.manifest import Method

PAPERS = load_references()
ROWS = Rows(load_suites().values())


def beside(paper: str, table: str, memory: str, **config: Any) -> set[str]:
    """The rows of a table, each with its setting, that such a method is."""
    usual = registry.load("memory", memory).Config(**config).model_dump(mode="json")
    method = Method("it", memory, "m", config, usual)
    return {
        " ".join([cell.method, *cell.setting.values()])
        for cell in PAPERS[paper].cells(table)
        if ROWS.matches(method, cell)
    }


@pytest.mark.parametrize(
    ("paper", "table", "memory", "config", "rows"),
    [
        ("gam", "table3", "gam", {}, {"Ours"}),
        ("gam", "table3", "gam", {"without": "tan"}, {"w/o TAN"}),
        ("gam", "table3", "gam", {"without": "tan", "k": 5}, set()),
        ("gam", "table6", "gam", {"without": "epg"}, {"w/o EPG"}),
        ("gam", "table1", "gam", {"without": "tan"}, set()),
        ("gam", "figure4", "gam", {"noise": 0.4}, {"Ours 0.4"}),
        ("hgmem", "table2", "hgmem", {"merge": False}, {"w/o. Merging"}),
        ("hgmem", "table1", "hgmem", {"merge": False}, set()),
        ("hgmem", "table1", "naive-rag", {}, {"NaiveRAG"}),
        ("hgmem", "table3", "hgmem", {}, {"HGMem primitive", "HGMem sense-making"}),
        ("mnemis", "table4", "mnemis", {"routes": "system2"}, {"System-2 Only"}),
        ("mnemis", "table4", "mnemis", {"preset": "small"}, {"System-1 + System-2"}),
        ("mnemis", "table9", "mnemis", {"k": 30}, {"System-1 + System-2 30"}),
        ("mnemis", "table9", "mnemis", {}, {"System-1 + System-2 10"}),
        ("mnemis", "table5", "mnemis", {}, set()),
        ("mnemis", "table7", "mnemis", {"routes": "system1", "kinds": "rag"}, {"RAG"}),
        ("mindgraph", "table2", "mindgraph", {}, {"MindGraph"}),
    ],
)
def test_a_method_is_the_row_of_its_settings(
    paper: str, table: str, memory: str, config: dict[str, Any], rows: set[str]
) -> None:
    assert beside(paper, table, memory, **config) == rows


def test_what_is_not_installed_is_the_row_of_its_name() -> None:
    (cell, *_) = PAPERS["gam"].cells("table3")
    assert not ROWS.matches(Method("it", "elsewhere", "m", {}, {}), cell)
