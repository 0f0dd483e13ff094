"""The tools that answers over a graph used, by the size of the graph, as MindGraph §5.4 tells it.

    >>> ToolUse.of(85, ("subgraph_summary(mode='index')", "lookup_source(node_id='ann')"))
    ToolUse(nodes=85, lookups=1, indexes=1, details=0)

A call is a line ``tool(arguments)`` of an answer's trace, whatever came of it; a call whose
arguments could not be read reached no tool and is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Final, Self

from mgl.evaluation.papers.references import Cell as Printed
from mgl.evaluation.papers.references import Paper
from mgl.evaluation.report.references import place_of, printed_datum
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.report.tables import NONE, Cell, Datum, Table, number_cell, share_cell, who
from mgl.evaluation.statistics import wilson_interval

__all__ = ["ToolUse", "tool_table", "tool_uses"]

MEMORY: Final = "mindgraph"
SIZES: Final = {"fewer than 50": 50, "50 to 150": 150, "150 or more": float("inf")}
"""The sizes of §5.4 by the number of nodes that each ends before; a printed number names its size
in its setting ``nodes``."""

QUANTITIES: Final[Mapping[str, str]] = {
    "graph_nodes": "median nodes of the graph",
    "summaries_used": "uses summaries, %",
    "lookups": "median lookups",
    "index_calls": "median index calls",
    "detail_calls": "median detail calls",
}
"""What is told of each size, by the name that a printed number has it under (``Column.ours``)."""

_CALL: Final = re.compile(r"(lookup_source|subgraph_summary)\((.*)\)", re.DOTALL)
_MODE: Final = re.compile(r"(?:^|, )mode=(?!'index')")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What one answer called over a graph of so many ``nodes``: passages looked up, and summaries
    as an index of all subgraphs or in detail of one."""

    nodes: int
    lookups: int
    indexes: int
    details: int

    @classmethod
    def of(cls, nodes: int, trace: Iterable[str]) -> Self:
        calls = [found.groups() for line in trace if (found := _CALL.fullmatch(line))]
        modes = [arguments for tool, arguments in calls if tool == "subgraph_summary"]
        details = sum(_MODE.search(arguments) is not None for arguments in modes)
        return cls(nodes, len(calls) - len(modes), len(modes) - details, details)

    @property
    def summaries(self) -> int:
        return self.indexes + self.details


_MEDIANS: Final[Mapping[str, Callable[[ToolUse], int]]] = {
    "graph_nodes": lambda use: use.nodes,
    "lookups": lambda use: use.lookups,
    "index_calls": lambda use: use.indexes,
    "detail_calls": lambda use: use.details,
}


def tool_uses(series: Series) -> list[ToolUse]:
    """Of each answer of a method; none where the method is not MindGraph. What failed has
    neither a graph nor a trace, and is left out."""
    return [
        ToolUse.of(record.memory["nodes"], record.trace)
        for record in series.records
        if series.method.memory == MEMORY and "nodes" in record.memory
    ]


def tool_table(group: Group, papers: Iterable[Paper]) -> Table | None:
    """What answers used, by size, with the printed numbers of each size beside; None where
    MindGraph gave no answer."""
    printed = [
        cell
        for paper in papers
        for cell in paper.cells()
        if cell.memory == MEMORY and cell.setting.get("nodes") in SIZES
    ]
    used = [(series, own) for series in group.series if (own := tool_uses(series))]
    rows = [row for series, own in used for row in _rows(series, own, printed)]
    if not rows:
        return None
    head = [name for size in SIZES for name in (f"{size} nodes", f"{size}, in print")]
    return Table(
        "Tool use by graph size",
        ("method", "of an answer", *head),
        tuple(rows),
        (
            "Medians and shares are over all answers of the size that did not fail, those that "
            "used no tool included.",
            *_notes(printed),
        ),
    )


def _rows(
    series: Series, used: Sequence[ToolUse], printed: Sequence[Printed]
) -> Iterator[tuple[Cell, ...]]:
    by_size: dict[str, list[ToolUse]] = {size: [] for size in SIZES}
    for each in used:
        by_size[next(size for size, end in SIZES.items() if each.nodes < end)].append(each)
    counts = [(Cell(f"{len(own)}"), Cell(NONE, quiet=True)) for own in by_size.values()]
    yield (Cell(series.label), Cell("answers"), *(cell for pair in counts for cell in pair))
    for quantity, shown in QUANTITIES.items():
        row = [Cell(series.label), Cell(shown)]
        for size, own in by_size.items():
            of = who(series, f"{size} nodes")
            beside = [
                one for one in printed if (one.scorer, one.setting["nodes"]) == (quantity, size)
            ]
            row += (_ours(quantity, own, of), _printed(beside, of.part))
        yield tuple(row)


def _ours(quantity: str, used: Sequence[ToolUse], of: Datum) -> Cell:
    if not used:
        return Cell(NONE, quiet=True)
    if quantity in _MEDIANS:
        value = median(map(_MEDIANS[quantity], used))
        digits = 0 if float(value).is_integer() else 1
        return number_cell("tools", quantity, value, of, n=len(used), digits=digits)
    share = wilson_interval(sum(use.summaries > 0 for use in used), len(used))
    return share_cell("tools", quantity, share, of)


def _printed(cells: Sequence[Printed], part: str) -> Cell:
    if not cells:
        return Cell(NONE, quiet=True)
    models = dict.fromkeys(one.model or "model not said" for one in cells)
    return Cell(
        "; ".join(one.text for one in cells),
        beside=", ".join(models),
        data=tuple(replace(printed_datum([one]), part=part) for one in cells),
    )


def _notes(printed: Iterable[Printed]) -> Iterator[str]:
    places = {(one.paper, one.table): one for one in printed}
    for (paper, table), one in places.items():
        yield (
            f"In print: {paper}, {place_of(table)}, on {one.benchmark}, with the paper's own "
            f"questions and model. {' '.join(one.notes)}".strip()
        )
