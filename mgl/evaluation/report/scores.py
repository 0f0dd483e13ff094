"""Tables of scores: every method by every metric, and by the parts of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mgl.evaluation.records import Outcome, Record
from mgl.evaluation.report.figures import (
    CATEGORY,
    Metric,
    figure,
    mean_of_parts,
    measured,
    part_of,
)
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.report.tables import NONE, Cell, Table, score_cell, who

__all__ = ["common", "of_part", "part_tables", "parts", "score_of", "score_tables"]

BESIDE_EACH_OTHER: Final = 4
MOST_PARTS: Final = 12
NOT_SCORED: Final[tuple[Outcome, ...]] = ("unscored", "failed")


def score_tables(group: Group, metrics: Sequence[Metric]) -> Iterator[Table]:
    """Every method by every metric, a few metrics a table, the first with what became of items."""
    worth = [metric for metric in metrics if not metric.measure]
    for start in range(0, len(worth), BESIDE_EACH_OTHER):
        shown = worth[start : start + BESIDE_EACH_OTHER]
        counts = ("items", *NOT_SCORED) if start == 0 else ()
        rows = []
        for series in group.series:
            outcomes = [record.outcome for record in series.records]
            row = [Cell(series.label)]
            if counts:
                row.append(Cell(f"{len(outcomes)}"))
                row += (Cell(f"{outcomes.count(each)}") for each in NOT_SCORED)
            row += (score_of(series, metric, series.records) for metric in shown)
            rows.append(tuple(row))
        yield Table(
            "Scores" if start == 0 else "Further scores",
            ("method", *counts, *(f"{metric.shown}, %" for metric in shown)),
            tuple(rows),
            tuple(_about(metric) for metric in shown if metric.about),
        )


def part_tables(group: Group, metrics: Sequence[Metric]) -> Iterator[Table]:
    """Every metric by category and by every label that tells items apart, where it has a value in
    any part (pairs of which each has both parts have none); the first metric's categories are open
    to see."""
    for name, values in parts(group).items():
        for place, metric in enumerate(each for each in metrics if not each.measure):
            by_part = tuple(_by_part(group, metric, name, values))
            if all(cell.quiet for row in by_part for cell in row[1:]):
                continue
            plain = name == CATEGORY and metric.kind != "together"
            head = ("method", *(value or NONE for value in values))
            yield Table(
                f"{metric.shown} by {name}, %",
                (*head, "mean of categories") if plain else head,
                by_part,
                ("The mean of categories gives each the same weight, whatever its size.",)
                if plain
                else (),
                folded=place > 0 or name != CATEGORY,
            )


def parts(group: Group) -> dict[str, list[str]]:
    """What the items can be told apart by, and its values: numbers in their order, all else in the
    order of the items.

    A label that splits the items as another does is left out.
    """
    found: dict[str, list[str]] = {}
    seen = []
    for name, own in _labels(group).items():
        values = list(dict.fromkeys(own))
        split = [values.index(each) for each in own]
        if 1 < len(values) <= MOST_PARTS and split not in seen:
            seen.append(split)
            found[name] = sorted(values, key=int) if all(map(str.isdecimal, values)) else values
    return found


def common(group: Group) -> dict[str, str]:
    """The labels that all items have in common: a part of the benchmark that they all are of."""
    return {name: own[0] for name, own in _labels(group).items() if own[0] and len(set(own)) == 1}


def _labels(group: Group) -> dict[str, list[str]]:
    """What each item is called by its category and by every label, item by item."""
    items = {record.item["id"]: record.item for series in group.series for record in series.records}
    names = dict.fromkeys([CATEGORY, *(name for item in items.values() for name in item["labels"])])
    return {name: [part_of(item, name) for item in items.values()] for name in names if items}


def _about(metric: Metric) -> str:
    return f"{metric.shown}: {metric.about.replace('``', '')}."


def of_part(record: Record, name: str, value: str) -> bool:
    """Whether an item's category or label has that value."""
    return part_of(record.item, name) == value


def score_of(series: Series, metric: Metric, records: Sequence[Record], part: str = "") -> Cell:
    """A method's score on some of its items."""
    found = figure(metric, records) if measured(metric, series.records) else None
    return score_cell(found, metric.name, who(series, part))


def _by_part(
    group: Group, metric: Metric, name: str, values: Sequence[str]
) -> Iterator[tuple[Cell, ...]]:
    for series in group.series:
        row = [Cell(series.label)]
        for value in values:
            records = [record for record in series.records if of_part(record, name, value)]
            row.append(score_of(series, metric, records, f"{name}: {value}"))
        if name == CATEGORY and metric.kind != "together":
            average = mean_of_parts(metric, series.records)
            known = average if measured(metric, series.records) else None
            row.append(score_cell(known, metric.name, who(series, "mean of categories")))
        yield tuple(row)
