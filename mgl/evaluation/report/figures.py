"""One figure of a report: a mean over items, its interval, and what became of the items.

    >>> compute_figure(Metric("exact_match", "share"), records).mean        # doctest: +SKIP
    0.4

The denominator of a score is every item of the method: one that failed or lacks the score counts 0,
and the mean over those that have it stands beside (``of_scored``). Recall of evidence is over the
items whose evidence the benchmark names. A property of an answer (``MEASURES``) is over the answers
that have it, since 0 would claim something of those that do not.

Shares have Wilson's interval, means the bootstrap's. If all values are the same a bootstrap has no
width, and no interval is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import Answered, Record, item_from_json
from mgl.evaluation.report.data import (
    Cell,
    Datum,
    empty_cell,
    percent,
    percent_interval,
)
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.scorers.bertscore import BERTSCORE, bertscores_among
from mgl.evaluation.scorers.registry import AGGREGATES, SCORERS, Scored
from mgl.evaluation.statistics import (
    Indices,
    Interval,
    bootstrap_interval,
    resample_interval,
    wilson_interval,
)

__all__ = [
    "CATEGORY",
    "FEW",
    "MEASURES",
    "Figure",
    "Metric",
    "average",
    "average_parts",
    "compute_figure",
    "datum_of",
    "is_measured",
    "list_metrics",
    "part_of",
    "score_cell",
    "series_cell",
]

Kind = Literal["share", "mean", "together"]

CATEGORY: Final = "category"
"""Asks for a benchmark's own category of an item, where else a label is named."""

MEASURES: Final = ("citations_verbatim", "compaction_ratio")
FEW: Final = 10
"""Below so many values the bootstrap's interval is too narrow, and a figure says so."""


@dataclass(frozen=True, slots=True)
class Metric:
    """``kind`` is ``share`` if all values are 0 or 1, ``together`` for an aggregate over items.
    ``judge`` is a name of ``JUDGES``, empty for a scorer; records have the value by ``name``."""

    name: str
    kind: Kind
    about: str = ""
    judge: str = ""

    @property
    def printed(self) -> str:
        """What ``eval/references`` calls it."""
        return self.judge or self.name

    @property
    def shown(self) -> str:
        """Its name for readers."""
        return f"judge {self.name}" if self.judge else self.name

    @property
    def is_measure(self) -> bool:
        """Whether it is over the answers that have it alone."""
        return self.name in MEASURES

    def counts(self, record: Record) -> bool:
        """Whether an item is in the denominator. What could not be read is missing."""
        if record.is_unread(self.name):
            return False
        if self.is_measure:
            return record.value(self.name) is not None
        if self.judge:  # what an unfinished run has yet to judge is not wrong
            return record.outcome == "failed" or self.name in record.verdicts
        return record.has_place_for(self.name)


@dataclass(frozen=True, slots=True)
class Figure:
    """``mean`` over ``n`` with its 95% interval, if it has one.

    ``of_scored`` is the mean over the ``scored`` items that have the score, None if none has. Of
    the n, ``failed`` were not answered, and ``unscored`` were answered but lack the score.
    """

    mean: float
    low: float | None
    high: float | None
    n: int
    of_scored: float | None
    scored: int
    unscored: int
    failed: int
    kind: Kind

    @property
    def few(self) -> bool:
        return self.kind != "share" and self.n < FEW


def list_metrics(group: Group) -> list[Metric]:
    """List what a group was scored by: the first scorer, the judges, then the other scorers. Of
    models with one judge prompt the first one's verdict is the score."""
    records = [record for series in group.series for record in series.records]
    found = [_metric(name, records) for name in group.manifest.scorers]
    seats: dict[str, Seat] = {}
    for seat in group.manifest.panel:
        seats.setdefault(seat.judge, seat)
    found[1:1] = [
        Metric(seat.key, _kind(seat.key, records), f"verdicts of {seat.model}", seat.judge)
        for seat in seats.values()
    ]
    return found


def _metric(name: str, records: Sequence[Record]) -> Metric:
    if name in AGGREGATES:
        return Metric(name, "together", AGGREGATES[name].about)
    if name in SCORERS:
        return Metric(name, SCORERS[name].kind, SCORERS[name].about)
    about = BERTSCORE if bertscores_among([name]) else "a scorer unknown to this mgl"
    return Metric(name, _kind(name, records), about)


def _kind(name: str, records: Iterable[Record]) -> Kind:
    found = {record.value(name) for record in records} - {None}
    return "share" if found <= {0.0, 1.0} else "mean"


def compute_figure(metric: Metric, records: Iterable[Record]) -> Figure | None:
    """Compute the figure of some items; None if none of them counts."""
    counted = [record for record in records if metric.counts(record)]
    if not counted:
        return None
    failed = sum(record.outcome == "failed" for record in counted)
    if metric.kind == "together":
        interval = AGGREGATES[metric.name].compute([_as_scored(record) for record in counted])
        scored = len(counted) - failed
        if interval is None:
            return None
        return _figure(metric.kind, interval, interval.n, None, (scored, 0, failed))
    values = [record.value(metric.name) for record in counted]
    known = [each for each in values if each is not None]
    numbers = [each or 0.0 for each in values]
    if metric.kind == "share":
        interval = wilson_interval(round(sum(numbers)), len(numbers))
    else:
        interval = bootstrap_interval(numbers)
    outcomes = (len(known), len(values) - len(known) - failed, failed)
    of_scored = sum(known) / len(known) if known else None
    return _figure(metric.kind, interval, len(values), of_scored, outcomes)


def _figure(
    kind: Kind,
    interval: Interval,
    n: int,
    of_scored: float | None,
    outcomes: tuple[int, int, int],
) -> Figure:
    """``outcomes`` are how many were scored, were not, and failed."""
    known = kind == "share" or interval.low != interval.high
    low, high = (interval.low, interval.high) if known else (None, None)
    return Figure(interval.mean, low, high, n, of_scored, *outcomes, kind)


def _as_scored(record: Record) -> Scored:
    failed = record.outcome == "failed"
    return Scored(item_from_json(record.item), None if failed else Answered.of(record))


def is_measured(metric: Metric, records: Iterable[Record]) -> bool:
    """Whether a method has a metric at all, or no item that could have it was answered: what
    retrieves nothing, say, has no recall of evidence rather than one of 0."""
    answered = [each for each in records if each.outcome != "failed"]
    if metric.judge:
        return not answered or any(metric.name in record.verdicts for record in answered)
    able = [record for record in answered if metric.counts(record)]
    if metric.kind == "together" or not able:
        return True
    return any(record.value(metric.name) is not None for record in able)


def part_of(item: Mapping[str, Any], name: str) -> str:
    """Return an item's category, or its value of a label; empty if it has none."""
    value: str = item[CATEGORY] if name == CATEGORY else item["labels"].get(name, "")
    return value


def average(metric: Metric, records: Sequence[Record], over: str | None) -> Figure | None:
    """Average items as a printed number does: over all of them, or with equal weights over the
    parts that ``over`` distinguishes (``papers.references.Cell.categories``).

    Items of one part have its mean; aggregates are not averaged. None if no item counts.
    """
    parts = None if over is None else average_parts(metric, records, over)
    return parts or compute_figure(metric, records)


def average_parts(metric: Metric, records: Iterable[Record], name: str = CATEGORY) -> Figure | None:
    """Average the parts' means whatever their sizes, as some papers do.

    The interval resamples all items. None for fewer than two parts, and for aggregates.
    """
    counted = [record for record in records if metric.counts(record)]
    own = [part_of(record.item, name) for record in counted]
    names = sorted(set(own))
    whole = compute_figure(metric, counted) if metric.kind != "together" else None
    if len(names) < 2 or whole is None:
        return None
    place = np.array([names.index(each) for each in own])
    worth = np.array([record.value(metric.name) or 0.0 for record in counted])

    def mean(drawn: Indices) -> float:
        sizes = np.bincount(place[drawn], minlength=len(names))
        sums = np.bincount(place[drawn], weights=worth[drawn], minlength=len(names))
        return float((sums[sizes > 0] / sizes[sizes > 0]).mean())

    interval = resample_interval(mean, len(counted))
    outcomes = (whole.scored, whole.unscored, whole.failed)
    return _figure("mean", interval, whole.n, None, outcomes)


def datum_of(series: Series, part: str = "") -> Datum:
    """Start a datum of a method, still without its figure; ``part`` names a subset of the items."""
    return Datum("", "", 0.0, method=series.label, model=series.method.model, part=part)


def score_cell(figure: Figure | None, quantity: str, of: Datum) -> Cell:
    """Show a figure with its interval, n, and the mean over what was scored."""
    if figure is None:
        return empty_cell()
    beside = [f"n {figure.n:,}", *(["few"] if figure.few else [])]
    if figure.of_scored is not None and figure.scored < figure.n:
        beside.append(f"{figure.scored} scored: {percent(figure.of_scored)}")
    ends, span = "no interval", None
    if figure.low is not None and figure.high is not None:
        ends = percent_interval(figure.low, figure.high)
        if 0 <= figure.low <= figure.high <= 1:
            span = (figure.low, figure.mean, figure.high)
    datum = replace(
        of,
        kind="score",
        quantity=quantity,
        value=figure.mean,
        low=figure.low,
        high=figure.high,
        n=figure.n,
        of_scored=figure.of_scored,
        scored=figure.scored,
        unscored=figure.unscored,
        failed=figure.failed,
    )
    return Cell(percent(figure.mean), ends, " · ".join(beside), span, data=(datum,))


def series_cell(series: Series, metric: Metric, records: Sequence[Record], part: str = "") -> Cell:
    """Show a method's score on some of its items."""
    found = compute_figure(metric, records) if is_measured(metric, series.records) else None
    return score_cell(found, metric.name, datum_of(series, part))
