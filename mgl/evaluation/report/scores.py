"""Tables of scores: by metric, by part, differences between methods, and the papers' numbers.

Tested are the metrics that a report shows first: the benchmark's first scorer, and its judges. All
comparisons of a report are one family (Holm): two methods differ if the corrected p is at most 0.05
and the interval of the difference excludes 0.

A printed number stands beside a method of ours if it is of the same benchmark, metric and row
(``mgl.evaluation.papers.suites.Rows``): an ablation of ours beside the paper's, not beside its
whole system. If the model, the judge or the items differ, its row shows that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from mgl.evaluation.papers.references import Cell as Printed
from mgl.evaluation.papers.references import Paper, find_cells
from mgl.evaluation.papers.suites import Rows
from mgl.evaluation.records import Outcome
from mgl.evaluation.report.data import NONE, Cell, Datum, Table, difference_cell, empty_cell
from mgl.evaluation.report.figures import (
    CATEGORY,
    Metric,
    average,
    average_parts,
    datum_of,
    is_measured,
    part_of,
    score_cell,
    series_cell,
)
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.statistics import Paired, compare_pairs, correct_holm

__all__ = [
    "Comparison",
    "compare_methods",
    "correct_families",
    "difference_table",
    "name_table",
    "part_tables",
    "printed_datum",
    "reference_tables",
    "score_tables",
]

COLUMNS: Final = 4  # metrics in one table
MOST_PARTS: Final = 12
NOT_SCORED: Final[tuple[Outcome, ...]] = ("unscored", "failed")
LEVEL: Final = 0.05
PRINT: Final = ("in print", "its model", "its judge", "averaged over", "where")
AVERAGED: Final = {"questions": "questions", "categories": "categories, equal weights"}


def score_tables(group: Group, metrics: Sequence[Metric]) -> Iterator[Table]:
    """Show every method by every metric, a few a table, the first with the items' outcomes."""
    worth = [metric for metric in metrics if not metric.is_measure]
    for start in range(0, len(worth), COLUMNS):
        shown = worth[start : start + COLUMNS]
        counts = ("items", *NOT_SCORED) if start == 0 else ()
        rows = []
        for series in group.series:
            outcomes = [record.outcome for record in series.records]
            numbers = [len(outcomes), *(outcomes.count(each) for each in NOT_SCORED)]
            row = [Cell(series.label), *(Cell(f"{n}") for n in numbers if counts)]
            row += (series_cell(series, metric, series.records) for metric in shown)
            rows.append(tuple(row))
        yield Table(
            "Scores" if start == 0 else "Further scores",
            ("method", *counts, *(f"{metric.shown}, %" for metric in shown)),
            tuple(rows),
            tuple(f"{one.shown}: {one.about.replace('``', '')}." for one in shown if one.about),
        )


def part_tables(group: Group, metrics: Sequence[Metric]) -> Iterator[Table]:
    """Show every metric by category and label, if it has a value in any part (pairs that have both
    parts have none); all but the first metric's categories are folded."""
    for name, values in _parts(group).items():
        for place, metric in enumerate(each for each in metrics if not each.is_measure):
            averaged = name == CATEGORY and metric.kind != "together"
            rows = tuple(_part_rows(group, metric, name, values, averaged=averaged))
            if all(cell.quiet for row in rows for cell in row[1:]):
                continue
            head = ("method", *(value or NONE for value in values))
            note = "The mean of categories gives each the same weight, whatever its size."
            yield Table(
                f"{metric.shown} by {name}, %",
                (*head, "mean of categories") if averaged else head,
                rows,
                (note,) if averaged else (),
                folded=place > 0 or name != CATEGORY,
            )


def _part_rows(
    group: Group, metric: Metric, name: str, values: Sequence[str], *, averaged: bool
) -> Iterator[tuple[Cell, ...]]:
    for series in group.series:
        row = [Cell(series.label)]
        for value in values:
            records = [one for one in series.records if part_of(one.item, name) == value]
            row.append(series_cell(series, metric, records, f"{name}: {value}"))
        if averaged:
            measured = is_measured(metric, series.records)
            mean = average_parts(metric, series.records) if measured else None
            row.append(score_cell(mean, metric.name, datum_of(series, "mean of categories")))
        yield tuple(row)


def _labels(group: Group) -> dict[str, list[str]]:
    """The category and every label of each item, item by item."""
    items = {record.item["id"]: record.item for series in group.series for record in series.records}
    names = dict.fromkeys([CATEGORY, *(name for item in items.values() for name in item["labels"])])
    return {name: [part_of(item, name) for item in items.values()] for name in names if items}


def _parts(group: Group) -> dict[str, list[str]]:
    """What divides the items, with its values: numbers sorted, others in the order of the items.

    A label that splits the items as another does is left out.
    """
    found: dict[str, list[str]] = {}
    splits = []
    for name, own in _labels(group).items():
        values = list(dict.fromkeys(own))
        split = [values.index(each) for each in own]
        if 1 < len(values) <= MOST_PARTS and split not in splits:
            splits.append(split)
            found[name] = sorted(values, key=int) if all(map(str.isdecimal, values)) else values
    return found


# Differences


@dataclass(frozen=True, slots=True)
class Comparison:
    """``one`` less ``other``; ``corrected`` is the p-value corrected for the whole report."""

    one: str
    other: str
    metric: Metric
    found: Paired
    corrected: float = 1.0

    @property
    def differs(self) -> bool:
        interval = self.found.difference
        return self.corrected <= LEVEL and not interval.low <= 0 <= interval.high

    @property
    def verdict(self) -> str:
        """What may be said of the two methods."""
        interval = self.found.difference
        if self.differs:
            return f"{self.one if interval.mean > 0 else self.other} is higher"
        why = [
            *(["the interval holds 0"] if interval.low <= 0 <= interval.high else []),
            *([f"the corrected p is above {LEVEL}"] if self.corrected > LEVEL else []),
        ]
        return f"not told apart: {' and '.join(why)}"


def compare_methods(group: Group, metrics: Sequence[Metric]) -> list[Comparison]:
    """Compare every two methods of a group on their common items, not corrected yet."""
    able = [each for each in metrics if not each.is_measure and each.kind != "together"]
    tested = [each for place, each in enumerate(able) if place == 0 or each.judge]
    found = []
    for metric in tested:
        measured = [each for each in group.series if is_measured(metric, each.records)]
        for one, other in combinations(measured, 2):
            left, right = one.by_item, other.by_item
            items = [
                item
                for item in left
                if item in right and metric.counts(left[item]) and metric.counts(right[item])
            ]
            if items:
                paired = compare_pairs(
                    [left[item].value(metric.name) or 0.0 for item in items],
                    [right[item].value(metric.name) or 0.0 for item in items],
                    [left[item].item["source"] for item in items],
                )
                found.append(Comparison(one.label, other.label, metric, paired))
    return found


def correct_families(families: Sequence[Sequence[Comparison]]) -> list[list[Comparison]]:
    """Correct the p-values of all groups for all comparisons together."""
    corrected = iter(correct_holm([each.found.p for family in families for each in family]))
    return [[replace(each, corrected=next(corrected)) for each in family] for family in families]


def difference_table(comparisons: Sequence[Comparison], family: int) -> Table:
    """Show the comparisons of one group; ``family`` is how many the report makes."""
    used = dict.fromkeys(each.found.test for each in comparisons)
    return Table(
        "Differences on the same items",
        ("methods", "metric", "difference, points", "p", "p, corrected", "what it shows"),
        tuple(_difference_row(each) for each in comparisons),
        (
            f"Two-sided, paired item by item: {'; '.join(used)}. Corrected by Holm for the "
            f"{family} comparisons of this report.",
        ),
    )


def _difference_row(each: Comparison) -> tuple[Cell, ...]:
    interval = each.found.difference
    datum = Datum(
        "difference",
        each.metric.name,
        interval.mean,
        method=each.one,
        low=interval.low,
        high=interval.high,
        n=interval.n,
        other=each.other,
        p=each.found.p,
        p_corrected=each.corrected,
        test=each.found.test,
    )
    shown = ["< 0.001" if p < 0.001 else f"{p:.3f}" for p in (each.found.p, each.corrected)]
    return (
        Cell(f"{each.one} − {each.other}"),
        Cell(each.metric.shown),
        replace(difference_cell(interval), data=(datum,)),
        *map(Cell, shown),
        Cell(each.verdict, quiet=not each.differs),
    )


# The papers' numbers


def reference_tables(
    group: Group, metrics: Sequence[Metric], papers: Sequence[Paper], rows: Rows
) -> Iterator[Table]:
    """Ours beside what is printed of the same row: of all items as the paper runs it, then of parts
    and under other settings; then what is printed of rows that were not run."""
    labels = {name: own[0] for name, own in _labels(group).items() if own[0] and len({*own}) == 1}
    wholes: list[dict[str, str]] = [{}, *({name: value} for name, value in labels.items())]
    beside = _Beside(group, papers, rows)
    printed = [
        (metric, [one for part in wholes for one in beside.find(metric, part)])
        for metric in metrics
    ]
    head = ("method", "metric", "ours, %", *PRINT)
    plain = [
        row
        for metric, cells in printed
        for row in beside.rows(metric, [one for one in cells if not one.setting])
    ]
    if plain:
        note = (
            "Printed numbers are of the papers' own runs, with other models, judges or items than "
            "ours where their row says so: they give context and are not tested against. Where a "
            "paper averages over categories, so is ours in that row."
        )
        yield Table("Beside the papers", head, tuple(plain), (note,))
    further = [
        row
        for metric, cells in printed
        for row in beside.rows(metric, [one for one in cells if one.setting])
    ]
    further += (
        row
        for name, values in _parts(group).items()
        for value in values
        for metric in metrics
        for row in beside.rows(metric, beside.find(metric, {name: value}), name, value)
    )
    if further:
        title = "Beside the papers, under other settings and by part"
        yield Table(title, head, tuple(further), folded=True)
    others = [
        (Cell(alike[0].method), Cell(metric.shown), *_printed_cells(alike))
        for metric, cells in printed
        for alike in _merge_places(
            one
            for one in cells
            if not any(rows.matches(series.method, one) for series in group.series)
        )
    ]
    if others:
        title = "In print, of methods and settings that are not run here"
        yield Table(title, ("in print as", "metric", *PRINT), tuple(others), folded=True)


@dataclass(frozen=True)
class _Beside:
    group: Group
    papers: Sequence[Paper]
    matching: Rows

    def find(self, metric: Metric, part: dict[str, str]) -> list[Printed]:
        return find_cells(self.papers, self.group.benchmark, metric.printed, part=part)

    def rows(
        self, metric: Metric, printed: Sequence[Printed], name: str = "", value: str = ""
    ) -> Iterator[tuple[Cell, ...]]:
        """Each method beside what is printed of its row, its own model's first; of a part of the
        items only its own model's if there is one."""
        for series in self.group.series:
            own = [one for one in printed if self.matching.matches(series.method, one)]
            same = [one for one in own if one.profile == series.method.model]
            others = [one for one in own if one.profile != series.method.model]
            for alike in _merge_places(same if name and same else same + others):
                what = f"{metric.shown}, {name} {value}" if name else metric.shown
                ours = self._ours(series, metric, alike[0], name, value)
                yield (Cell(series.label), Cell(what), ours, *_printed_cells(alike))

    def _ours(
        self, series: Series, metric: Metric, printed: Printed, name: str, value: str
    ) -> Cell:
        """Our figure, averaged as the paper's. The tables of scores have its data."""
        if not is_measured(metric, series.records):
            return empty_cell()
        records = [one for one in series.records if not name or part_of(one.item, name) == value]
        found = average(metric, records, printed.categories)
        cell = replace(score_cell(found, metric.name, datum_of(series)), data=())
        if printed.categories is None or metric.kind == "together":
            return cell
        return replace(cell, beside=f"{cell.beside} · mean of categories")


def _merge_places(printed: Iterable[Printed]) -> list[list[Printed]]:
    """Group what a paper prints in several places."""
    places: dict[tuple[Any, ...], list[Printed]] = {}
    for one in printed:
        setting = tuple(one.setting.items())
        key = (one.paper, one.method, one.model, one.judge, one.text, one.averaging, one.n, setting)
        places.setdefault(key, []).append(one)
    return list(places.values())


def printed_datum(alike: Sequence[Printed]) -> Datum:
    """Describe a printed number with all its places, in the paper's unit."""
    one = alike[0]
    return Datum(
        "print",
        one.scorer or one.metric,
        one.value,
        method=one.method,
        model=one.model or "",
        part=", ".join(f"{name}: {value}" for name, value in one.part.items()),
        n=one.n,
        source=f"{_places(alike)}: {one.metric} ({one.unit})",
    )


def _printed_cells(alike: Sequence[Printed]) -> tuple[Cell, ...]:
    one = alike[0]
    setting = ", ".join(f"{name} {value}" for name, value in one.setting.items())
    size = f"n {one.n:,}" if one.n else "n not said"
    return (
        Cell(one.text, beside=size, data=(printed_datum(alike),)),
        Cell(one.model or "not said", beside=setting),
        Cell(one.judge or NONE),
        Cell(NONE if one.averaging == "none" else AVERAGED.get(one.averaging, one.averaging)),
        Cell(_places(alike), beside=f"{one.method}, {one.column}"),
    )


def _places(alike: Sequence[Printed]) -> str:
    return ", ".join(dict.fromkeys([alike[0].paper, *(name_table(each.table) for each in alike)]))


def name_table(table: str) -> str:
    """Write ``table3`` as people do."""
    kind = table.rstrip("0123456789.")
    return f"{'§' if kind == 'section' else kind.title() + ' '}{table.removeprefix(kind)}"
