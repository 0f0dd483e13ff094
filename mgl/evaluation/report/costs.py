"""Tables of what methods took: calls, tokens, seconds, sizes of memories, failures, tools used.

Calls and tokens are of completions, issued or replayed alike, from the records. Seconds depend on
the machine and the moment: what was replayed took none, and concurrent items each count their whole
wait. Tool use by the size of the graph is that of MindGraph §5.4.

    >>> ToolUse.of(85, ("subgraph_summary(mode='index')", "lookup_source(node_id='ann')"))
    ToolUse(nodes=85, lookups=1, indexes=1, details=0)
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final, Self

from mgl.evaluation.papers.references import Cell as Printed
from mgl.evaluation.papers.references import Paper
from mgl.evaluation.records import Answered, Record, Spent, item_from_json
from mgl.evaluation.report.data import (
    Cell,
    Datum,
    Table,
    empty_cell,
    number_cell,
    share_cell,
)
from mgl.evaluation.report.figures import (
    MEASURES,
    Metric,
    compute_figure,
    datum_of,
    score_cell,
)
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.report.scores import name_table, printed_datum
from mgl.evaluation.scorers.registry import score_answer
from mgl.evaluation.statistics import wilson_interval

__all__ = [
    "ToolUse",
    "cost_table",
    "failure_table",
    "list_tool_uses",
    "score_measures",
    "size_table",
    "stage_table",
    "tool_table",
]

UNITS: Final = {"build": "builds", "item": "answers", "verdict": "verdicts"}
TOKENS: Final = ("calls", "tokens in", "tokens out")


def cost_table(group: Group) -> Table:
    """Show what building, answering and judging took, in all and per build or answer."""
    return Table(
        "Cost",
        ("method", "of", "units", *TOKENS, "wall s", "engine s"),
        tuple(row for series in group.series for row in _cost_rows(series)),
        (
            "Totals, with the mean of one beside. Calls and tokens count completions, issued or "
            "replayed alike, of what succeeded; what failed is not included. A memory that is "
            "built for each question is part of its answers.",
            "Seconds are of this run's machine: replayed calls took none, and concurrent items "
            "wait for each other.",
        ),
    )


def _cost_rows(series: Series) -> Iterator[tuple[Cell, ...]]:
    seconds: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in series.seconds:
        seconds[str(row.get("unit"))].append(row)
    usages = {
        "build": [one.usage for one in series.builds if not one.reason],
        "item": [one.usage for one in series.records if one.outcome != "failed"],
        "verdict": [one.usage for record in series.records for one in record.verdicts.values()],
    }
    for unit, shown in UNITS.items():
        own = usages[unit]
        if not own and not seconds[unit]:
            continue
        total, of = (
            _sum(spent for usage in own for spent in usage.values()),
            datum_of(series, shown),
        )
        yield (
            Cell(series.label),
            Cell(shown),
            Cell(f"{len(own):,}"),
            *(_with_mean(name, n, len(own), of) for name, n in zip(TOKENS, total, strict=True)),
            *(
                _with_mean(name, sum(_numbers(seconds[unit], key)), len(seconds[unit]), of)
                for name, key in (("wall seconds", "wall_s"), ("engine seconds", "engine_s"))
            ),
        )


def _with_mean(quantity: str, total: float, n: int, of: Datum) -> Cell:
    if not n:
        return empty_cell()
    cell = number_cell("cost", quantity, total, of, n=n)
    return replace(cell, beside=f"{total / n:,.1f} each")


def stage_table(group: Group) -> Table | None:
    """Calls and tokens by stage; None if no stage is known."""
    rows = []
    for series in group.series:
        stages: defaultdict[str, list[Spent]] = defaultdict(list)
        for usage in [*(one.usage for one in series.builds), *(r.usage for r in series.records)]:
            for stage, spent in usage.items():
                stages[stage].append(spent)
        for stage, own in sorted(stages.items()):
            of = datum_of(series, f"stage {stage}")
            numbers = zip(TOKENS, _sum(own), strict=True)
            cells = (number_cell("cost", name, value, of) for name, value in numbers)
            rows.append((Cell(series.label), Cell(stage), *cells))
    head = ("method", "stage", *TOKENS)
    return Table("Cost by stage", head, tuple(rows), folded=True) if rows else None


def size_table(group: Group) -> Table:
    """Show how large memories are, how little is read, and whether citations hold."""
    rows = []
    for series in group.series:
        of, answered = datum_of(series), score_measures(series)
        facts = [one.memory for one in series.builds if one.memory]  # else each answer's own
        facts = facts or [one.memory for one in series.records if one.memory]
        asked = [one.memory for one in series.records]
        hyperedges = sum(_numbers(asked, "hyperedges"))
        joined = sum(_numbers(asked, "hyperedge_nodes")) / hyperedges if hyperedges else None
        rows.append(
            (
                Cell(series.label),
                *(_median_cell(facts, name, of) for name in ("nodes", "edges", "chunks")),
                number_cell("size", "nodes of a hyperedge", joined, of, digits=2),
                *(
                    score_cell(compute_figure(Metric(name, "mean"), answered), name, of)
                    for name in ("compaction_ratio", "citations_verbatim")
                ),
            )
        )
    head = ("method", "nodes", "edges", "chunks", "nodes of a hyperedge")
    return Table(
        "Memories, compaction and citations",
        (*head, "compaction ratio, %", "citations verbatim, %"),
        tuple(rows),
        (
            "Sizes are medians over memories, with the least and the largest; those of hyperedges "
            "the mean over all that answers were made from. The compaction ratio is the tokens of "
            "the first answering call over those of the source. The last two columns are means "
            "over the answers that have them; every citation has to be verbatim (100).",
        ),
    )


def failure_table(group: Group) -> Table | None:
    """Why items failed or lack a score; None if none did."""
    rows = []
    for series in group.series:
        kinds: Counter[tuple[str, str]] = Counter()
        first: dict[tuple[str, str], str] = {}
        for record in series.records:
            if record.outcome != "scored":
                kind = (str(record.outcome), record.reason.partition(":")[0])
                kinds[kind] += 1
                first.setdefault(kind, record.reason)
        for kind, n in kinds.most_common():
            rows.append((Cell(series.label), Cell(kind[0]), Cell(f"{n}"), Cell(first[kind])))
    head = ("method", "outcome", "items", "for instance")
    return Table("What went wrong", head, tuple(rows)) if rows else None


def score_measures(series: Series) -> list[Record]:
    """Score the answers by compaction and citations, whatever the benchmark's scorers are."""
    return [
        replace(each, scores=score_answer(MEASURES, item_from_json(each.item), Answered.of(each)))
        for each in series.records
        if each.outcome != "failed"
    ]


def _sum(spent: Iterable[Spent]) -> tuple[int, int, int]:
    every = list(spent)
    return (
        sum(one.calls for one in every),
        sum(one.input_tokens for one in every),
        sum(one.output_tokens for one in every),
    )


def _numbers(facts: Iterable[Mapping[str, Any]], name: str) -> list[float]:
    return [float(each[name]) for each in facts if isinstance(each.get(name), int | float)]


def _median_cell(facts: Sequence[Mapping[str, Any]], name: str, of: Datum) -> Cell:
    known = _numbers(facts, name)
    if not any(known):
        return empty_cell()
    cell = number_cell("size", name, median(known), replace(of, part="median"), n=len(known))
    return replace(cell, beside=f"{min(known):,.0f} to {max(known):,.0f} · n {len(known)}")


# Tool use

MEMORY: Final = "mindgraph"
SIZES: Final = {"fewer than 50": 50, "50 to 150": 150, "150 or more": float("inf")}
"""The sizes of §5.4 by the number of nodes that each ends before; a printed number names its size
in its setting ``nodes``."""

QUANTITIES: Final[Mapping[str, tuple[str, Callable[[ToolUse], int] | None]]] = {
    "graph_nodes": ("median nodes of the graph", lambda use: use.nodes),
    "summaries_used": ("uses summaries, %", None),
    "lookups": ("median lookups", lambda use: use.lookups),
    "index_calls": ("median index calls", lambda use: use.indexes),
    "detail_calls": ("median detail calls", lambda use: use.details),
}
"""What is shown of each size, by the name of a printed number (``Column.ours``): a median of one
count, or the share of answers that used summaries."""

_CALL: Final = re.compile(r"(lookup_source|subgraph_summary)\((.*)\)", re.DOTALL)
_MODE: Final = re.compile(r"(?:^|, )mode=(?!'index')")


@dataclass(frozen=True, slots=True)
class ToolUse:
    """What one answer called over a graph of ``nodes``: passages looked up, and summaries as an
    index of all subgraphs or in detail of one.

    A call is a line ``tool(arguments)`` of a trace, whatever came of it; one whose arguments were
    unreadable reached no tool and does not count.
    """

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


def list_tool_uses(series: Series) -> list[ToolUse]:
    """List the tool use of each answer that did not fail; empty if it is not MindGraph."""
    return [
        ToolUse.of(record.memory["nodes"], record.trace)
        for record in series.records
        if series.method.memory == MEMORY and "nodes" in record.memory
    ]


def tool_table(group: Group, papers: Iterable[Paper]) -> Table | None:
    """Tool use by graph size, with the printed numbers beside; None without MindGraph's answers."""
    printed = [
        cell
        for paper in papers
        for cell in paper.cells()
        if cell.memory == MEMORY and cell.setting.get("nodes") in SIZES
    ]
    used = [(series, own) for series in group.series if (own := list_tool_uses(series))]
    if not used:
        return None
    places = {(one.paper, one.table): one for one in printed}
    return Table(
        "Tool use by graph size",
        (
            "method",
            "of an answer",
            *(name for size in SIZES for name in (f"{size} nodes", f"{size}, in print")),
        ),
        tuple(row for series, own in used for row in _tool_rows(series, own, printed)),
        (
            "Medians and shares are over all answers of the size that did not fail, including "
            "those that used no tool.",
            *(
                f"In print: {paper}, {name_table(table)}, on {one.benchmark}, with the paper's own "
                f"questions and model. {' '.join(one.notes)}".strip()
                for (paper, table), one in places.items()
            ),
        ),
    )


def _tool_rows(
    series: Series, used: Sequence[ToolUse], printed: Sequence[Printed]
) -> Iterator[tuple[Cell, ...]]:
    by_size: dict[str, list[ToolUse]] = {size: [] for size in SIZES}
    for each in used:
        by_size[next(size for size, end in SIZES.items() if each.nodes < end)].append(each)
    counts = [(Cell(f"{len(own)}"), empty_cell()) for own in by_size.values()]
    yield (Cell(series.label), Cell("answers"), *(cell for pair in counts for cell in pair))
    for quantity, (shown, count) in QUANTITIES.items():
        row = [Cell(series.label), Cell(shown)]
        for size, own in by_size.items():
            of = datum_of(series, f"{size} nodes")
            alike = [
                one for one in printed if (one.scorer, one.setting["nodes"]) == (quantity, size)
            ]
            row += (_tool_cell(quantity, count, own, of), _printed_cell(alike, of.part))
        yield tuple(row)


def _tool_cell(
    quantity: str, count: Callable[[ToolUse], int] | None, used: Sequence[ToolUse], of: Datum
) -> Cell:
    if not used:
        return empty_cell()
    if count is None:
        summaries = sum(use.indexes + use.details > 0 for use in used)
        return share_cell("tools", quantity, wilson_interval(summaries, len(used)), of)
    value = median(map(count, used))
    digits = 0 if float(value).is_integer() else 1
    return number_cell("tools", quantity, value, of, n=len(used), digits=digits)


def _printed_cell(cells: Sequence[Printed], part: str) -> Cell:
    if not cells:
        return empty_cell()
    models = dict.fromkeys(one.model or "model not said" for one in cells)
    data = tuple(replace(printed_datum([one]), part=part) for one in cells)
    return Cell("; ".join(one.text for one in cells), beside=", ".join(models), data=data)
