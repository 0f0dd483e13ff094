"""How far the judge of a run can be relied on, as far as its records can tell.

That is: replies that could not be read, agreement with the scores by rule, and whether longer
answers get higher verdicts. Verdicts asked again, both orders of two answers, and people's labels
need calls of their own (``mgl.evaluation.judges.reliability``), and no run holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mgl.evaluation.intervals import Interval, wilson_interval
from mgl.evaluation.judges.reliability import agreement, length_bias
from mgl.evaluation.report.figures import Metric
from mgl.evaluation.report.runs import Group
from mgl.evaluation.report.tables import NONE, Cell, Datum, Table, difference_cell, percent
from mgl.evaluation.runs.records import Record
from mgl.evaluation.runs.summary import value_of

__all__ = ["judge_table"]


def judge_table(group: Group, metrics: Sequence[Metric]) -> Table | None:
    """What the records say of the judge; None where there is none."""
    judge = group.manifest.judge
    records = [each for series in group.series for each in series.records]
    judged = [record for record in records if judge in record.verdicts]
    if judge is None or not judged:
        return None
    unread = sum(record.verdicts[judge].score is None for record in judged)
    read = wilson_interval(len(judged) - unread, len(judged))
    rows = [_share("replies that could be read, %", judge, read, f"{unread} could not be")]
    rows += _agreements(judged, judge, [each for each in metrics if each.kind == "share"])
    if (row := _length(judged, judge)) is not None:
        rows.append(row)
    return Table(
        f"The judge: {judge} by {group.manifest.judge_model}",
        ("what", "found", "beside"),
        tuple(rows),
        (
            "Not measured here: the same verdicts asked again, two answers in both orders, and "
            "people's labels.",
        ),
    )


def _agreements(
    judged: Sequence[Record], judge: str, metrics: Sequence[Metric]
) -> Iterator[tuple[Cell, ...]]:
    said = [record.verdicts[judge].score for record in judged]
    for metric in metrics:
        if metric.judged:
            continue
        by_rule = [value_of(record, metric.name) for record in judged]
        if (found := agreement(said, by_rule)) is not None:
            kappa = found.kappa
            beside = "kappa " + (
                NONE if kappa is None else f"{kappa.mean:.2f} [{kappa.low:.2f}, {kappa.high:.2f}]"
            )
            if found.one_higher is not None:
                beside += f"; where they differ, the judge is higher in {found.one_higher:.0%}"
            yield _share(f"agreement with {metric.name}, %", judge, found.share, beside)


def _length(judged: Sequence[Record], judge: str) -> tuple[Cell, ...] | None:
    """Longer answers to the same question, by several methods."""
    found = length_bias(
        [record.answer for record in judged],
        [record.verdicts[judge].score for record in judged],
        [record.item["id"] for record in judged],
    )
    if found is None:
        return None
    slope = found.slope
    none = slope.low <= 0 <= slope.high
    return _row(
        "verdict for twice the length, points",
        judge,
        slope,
        "same questions; " + ("the interval holds 0: no bias shown" if none else "0 would be fair"),
        difference_cell(slope),
    )


def _share(what: str, judge: str, found: Interval, beside: str) -> tuple[Cell, ...]:
    ends = f"[{percent(found.low)}, {percent(found.high)}]"
    return _row(what, judge, found, beside, Cell(percent(found.mean), ends, f"n {found.n:,}"))


def _row(what: str, judge: str, found: Interval, beside: str, shown: Cell) -> tuple[Cell, ...]:
    datum = Datum(
        "agreement", what, found.mean, method=judge, low=found.low, high=found.high, n=found.n
    )
    return Cell(what), replace(shown, data=(datum,)), Cell(beside)
