"""The papers' numbers beside ours: each with its model, judge and averaging rule, and never mixed.

A printed number stands beside a method of ours where it is of the same benchmark, measured by what
we measure by the same name, and of the same row (``mgl.evaluation.papers.rows``): an ablation of
ours beside the paper's, and not beside its whole system. That the model, the judge or the items are
others is shown in its row; it is a reason to compare with care and not to leave it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mgl.evaluation.papers.references import Cell as Printed
from mgl.evaluation.papers.references import Paper, beside
from mgl.evaluation.papers.rows import Rows
from mgl.evaluation.report.figures import Metric, averaged, measured
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.report.scores import common, of_part, parts
from mgl.evaluation.report.tables import NONE, Cell, Datum, Table, score_cell, who

__all__ = ["place_of", "printed_datum", "reference_tables"]

PRINT = ("in print", "its model", "its judge", "averaged over", "where")
AVERAGED = {"questions": "questions", "categories": "categories, equal weights", "none": NONE}
NOTE = (
    "Printed numbers are of the papers' own runs, with other models, judges or items than ours "
    "where their row says so: they show where ours lie and are not tested against them. Where a "
    "paper averages over categories, so is ours in that row."
)


def reference_tables(
    group: Group, metrics: Sequence[Metric], papers: Iterable[Paper], rows: Rows
) -> Iterator[Table]:
    """Ours beside what is printed of the same row: first of all items as the paper runs it, then
    of parts of them and under other settings; then what is printed of rows not run here."""
    known = tuple(papers)
    wholes: list[dict[str, str]] = [{}, *({name: value} for name, value in common(group).items())]
    head = ("method", "metric", "ours, %", *PRINT)
    found = [
        (metric, [one for part in wholes for one in beside(known, benchmark, name, part=part)])
        for metric, benchmark, name in ((each, group.benchmark, each.printed) for each in metrics)
    ]
    plain = [
        row
        for metric, printed in found
        for row in _rows(group, metric, [one for one in printed if not one.setting], rows)
    ]
    if plain:
        yield Table("Beside the papers", head, tuple(plain), (NOTE,))
    further = [
        row
        for metric, printed in found
        for row in _rows(group, metric, [one for one in printed if one.setting], rows)
    ]
    further += (
        row
        for name, values in parts(group).items()
        for value in values
        for metric in metrics
        for row in _rows(
            group,
            metric,
            beside(known, group.benchmark, metric.printed, part={name: value}),
            rows,
            name,
            value,
        )
    )
    if further:
        title = "Beside the papers, under other settings and by part"
        yield Table(title, head, tuple(further), folded=True)
    others = [
        (Cell(alike[0].method), Cell(metric.shown), *_printed(alike))
        for metric, printed in found
        for alike in _once(
            one
            for one in printed
            if not any(rows.same(series.method, one) for series in group.series)
        )
    ]
    if others:
        title = "In print, of methods and settings that are not run here"
        yield Table(title, ("in print as", "metric", *PRINT), tuple(others), folded=True)


def _rows(
    group: Group,
    metric: Metric,
    printed: Sequence[Printed],
    rows: Rows,
    name: str = "",
    value: str = "",
) -> Iterator[tuple[Cell, ...]]:
    """Each method beside what is printed of its row: of its own model first, and of a part of
    the items of that alone where there is one."""
    for series in group.series:
        own = [one for one in printed if rows.same(series.method, one)]
        same_model = [one for one in own if one.profile == series.method.model]
        others = [one for one in own if one.profile != series.method.model]
        for alike in _once(same_model if name and same_model else same_model + others):
            what = f"{metric.shown}, {name} {value}" if name else metric.shown
            ours = _ours(series, metric, alike[0], name, value)
            yield (Cell(series.label), Cell(what), ours, *_printed(alike))


def _ours(series: Series, metric: Metric, printed: Printed, name: str, value: str) -> Cell:
    """Our figure, averaged as the paper's is. It is no figure of its own: the tables of scores
    have it with its data."""
    records = [each for each in series.records if not name or of_part(each, name, value)]
    if not measured(metric, series.records):
        return Cell(NONE, quiet=True)
    found = averaged(metric, records, printed.categories)
    cell = replace(score_cell(found, metric.name, who(series)), data=())
    if printed.categories is None or metric.kind == "together":
        return cell
    return replace(cell, beside=f"{cell.beside} · mean of categories")


def _once(printed: Iterable[Printed]) -> list[list[Printed]]:
    """Numbers that a paper prints in several places, together."""
    places: dict[tuple[Any, ...], list[Printed]] = {}
    for one in printed:
        setting = tuple(one.setting.items())
        key = (one.paper, one.method, one.model, one.judge, one.text, one.averaging, one.n, setting)
        places.setdefault(key, []).append(one)
    return list(places.values())


def printed_datum(alike: Sequence[Printed]) -> Datum:
    """A number that a paper prints, in all the places where it does; in the paper's unit."""
    one = alike[0]
    return Datum(
        "print",
        one.scorer or one.metric,
        one.value,
        method=one.method,
        model=one.model or "",
        part=", ".join(f"{name}: {value}" for name, value in one.part.items()),
        n=one.n,
        source=f"{_where(alike)}: {one.metric} ({one.unit})",
    )


def _printed(alike: Sequence[Printed]) -> tuple[Cell, ...]:
    one = alike[0]
    size = f"n {one.n:,}" if one.n else "n not said"
    return (
        Cell(one.text, beside=size, data=(printed_datum(alike),)),
        Cell(one.model or "not said", beside=_told(one.setting)),
        Cell(one.judge or NONE),
        Cell(AVERAGED.get(one.averaging, one.averaging)),
        Cell(_where(alike), beside=f"{one.method}, {one.column}"),
    )


def _where(alike: Sequence[Printed]) -> str:
    return ", ".join(dict.fromkeys([alike[0].paper, *(place_of(each.table) for each in alike)]))


def place_of(table: str) -> str:
    """``table3`` as people write it."""
    kind = table.rstrip("0123456789.")
    return f"{'§' if kind == 'section' else kind.title() + ' '}{table.removeprefix(kind)}"


def _told(setting: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())
