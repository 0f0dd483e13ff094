"""One figure of a report: a mean over items, how sure it is, and what became of the items.

    >>> figure(Metric("exact_match", "share"), records).mean        # doctest: +SKIP
    0.4

The denominator of a score is every item of the method: one that failed or that has no such score
counts 0, and the mean over those that have it stands beside (``of_scored``). Recall of evidence is
over the items whose evidence the benchmark names. What is a property of an answer and not its worth
(``MEASURES``) is over the answers that have it, since 0 would say something of those that have not.

Shares have Wilson's interval, means the bootstrap's. Where all values are the same a bootstrap
knows no interval, and none is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import Answered, Record, item_from_json
from mgl.evaluation.report.runs import Group
from mgl.evaluation.scorers.bertscore import BERTSCORE, bertscores_among
from mgl.evaluation.scorers.registry import AGGREGATES, SCORERS, Scored
from mgl.evaluation.statistics import (
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
    "averaged",
    "figure",
    "mean_of_parts",
    "measured",
    "metrics",
    "part_of",
]

Kind = Literal["share", "mean", "together"]

CATEGORY: Final = "category"
"""The name by which a benchmark's own category of an item is asked for, beside its labels."""

MEASURES: Final = ("citations_verbatim", "compaction_ratio")
FEW: Final = 10
"""Below so many values the bootstrap's interval is too narrow, and a figure says so."""


@dataclass(frozen=True, slots=True)
class Metric:
    """``kind`` is ``share`` where all values are 0 or 1, ``together`` where many items have the
    score in common (``mgl.evaluation.scorers.registry``). ``judge`` is whose verdict it is, a
    name of ``JUDGES``, empty for a scorer; records have it by ``name``."""

    name: str
    kind: Kind
    about: str = ""
    judge: str = ""

    @property
    def judged(self) -> bool:
        """Whether a model says it."""
        return bool(self.judge)

    @property
    def printed(self) -> str:
        """What ``eval/references`` calls it."""
        return self.judge or self.name

    @property
    def shown(self) -> str:
        """Its name for readers, to whom a judge's is not enough."""
        return f"judge {self.name}" if self.judged else self.name

    @property
    def measure(self) -> bool:
        """Whether it is over the answers that have it alone."""
        return self.name in MEASURES

    def counts(self, record: Record) -> bool:
        """Whether an item is in the denominator."""
        if self.measure:
            return record.value(self.name) is not None
        if self.judged:  # what a run that goes on has yet to judge is not wrong
            return record.outcome == "failed" or self.name in record.verdicts
        return record.has_place_for(self.name)


@dataclass(frozen=True, slots=True)
class Figure:
    """``mean`` over ``n``, with its 95% interval, None where there is none to tell.

    ``of_scored`` is the mean over the ``scored`` items that have the score, None where none has.
    Of the n, ``failed`` were not answered, and ``unscored`` were, without getting this score.
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


def metrics(group: Group) -> list[Metric]:
    """What the runs of a group were scored by, the judges after what comes first. Of models that
    judge by the same words the first one's verdict is the score."""
    records = [record for series in group.series for record in series.records]
    manifest = group.manifest
    found = [_metric(name, records) for name in manifest.scorers]
    seats: dict[str, Seat] = {}
    for seat in manifest.panel:
        seats.setdefault(seat.judge, seat)
    found[1:1] = [
        Metric(seat.key, _kind(seat.key, records), f"verdicts of {seat.model}", seat.judge)
        for seat in seats.values()
    ]
    return found


def figure(metric: Metric, records: Iterable[Record]) -> Figure | None:
    """The figure of some items; None where none of them counts."""
    counted = [record for record in records if metric.counts(record)]
    if not counted:
        return None
    if metric.kind == "together":
        return _together(metric, counted)
    values = [record.value(metric.name) for record in counted]
    known = [each for each in values if each is not None]
    failed = sum(record.outcome == "failed" for record in counted)
    interval = _interval(metric.kind, [each or 0.0 for each in values])
    low, high = _told(metric.kind, interval)
    return Figure(
        mean=interval.mean,
        low=low,
        high=high,
        n=len(values),
        of_scored=sum(known) / len(known) if known else None,
        scored=len(known),
        unscored=len(values) - len(known) - failed,
        failed=failed,
        kind=metric.kind,
    )


def measured(metric: Metric, records: Iterable[Record]) -> bool:
    """Whether a method has a score by a metric, or no item that could have one was answered: what
    retrieves nothing, say, has no recall of evidence, and not one of 0."""
    answered = [each for each in records if each.outcome != "failed"]
    if metric.judged:
        return not answered or any(metric.name in record.verdicts for record in answered)
    able = [record for record in answered if metric.counts(record)]
    if metric.kind == "together" or not able:
        return True
    return any(record.value(metric.name) is not None for record in able)


def part_of(item: Mapping[str, Any], name: str) -> str:
    """An item's category, or what it has of another label; empty where it has none of that."""
    value: str = item[CATEGORY] if name == CATEGORY else item["labels"].get(name, "")
    return value


def averaged(metric: Metric, records: Sequence[Record], over: str | None) -> Figure | None:
    """The figure of items averaged as a printed number is: over all of them, or with equal weights
    over the parts that ``over`` tells apart (``papers.references.Cell.categories``).

    Items that are all of one part have its mean, and what items have together is no mean. None
    where no item counts.
    """
    parts = None if over is None else mean_of_parts(metric, records, over)
    return parts or figure(metric, records)


def mean_of_parts(metric: Metric, records: Iterable[Record], name: str = CATEGORY) -> Figure | None:
    """The plain mean of the parts' means, whatever their sizes, as some papers average.

    ``name`` is what tells the parts apart. The interval is of items drawn from all; None where
    there are fewer than two parts, and for what items have together.
    """
    counted = [record for record in records if metric.counts(record)]
    own = [part_of(record.item, name) for record in counted]
    names = sorted(set(own))
    whole = figure(metric, counted) if metric.kind != "together" else None
    if len(names) < 2 or whole is None:
        return None
    place = np.array([names.index(each) for each in own])
    worth = np.array([record.value(metric.name) or 0.0 for record in counted])

    def mean(drawn: NDArray[np.int64]) -> float:
        sizes = np.bincount(place[drawn], minlength=len(names))
        sums = np.bincount(place[drawn], weights=worth[drawn], minlength=len(names))
        return float((sums[sizes > 0] / sizes[sizes > 0]).mean())

    interval = resample_interval(mean, len(counted))
    low, high = _told("mean", interval)
    return Figure(
        interval.mean,
        low,
        high,
        whole.n,
        None,
        whole.scored,
        whole.unscored,
        whole.failed,
        "mean",
    )


def _metric(name: str, records: Sequence[Record]) -> Metric:
    if name in AGGREGATES:
        return Metric(name, "together", AGGREGATES[name].about)
    if name in SCORERS:
        return Metric(name, SCORERS[name].kind, SCORERS[name].about)
    about = BERTSCORE if bertscores_among([name]) else "a scorer that this mgl does not know"
    return Metric(name, _kind(name, records), about)


def _kind(name: str, records: Iterable[Record]) -> Kind:
    found = {record.value(name) for record in records} - {None}
    return "share" if found <= {0.0, 1.0} else "mean"


def _interval(kind: Kind, values: Sequence[float]) -> Interval:
    if kind == "share":
        return wilson_interval(round(sum(values)), len(values))
    return bootstrap_interval(values)


def _told(kind: Kind, interval: Interval) -> tuple[float | None, float | None]:
    """The ends of an interval, none where it has no width since all its values are the same."""
    if kind != "share" and interval.low == interval.high:
        return None, None
    return interval.low, interval.high


def _together(metric: Metric, records: Sequence[Record]) -> Figure | None:
    answers = [_scored(record) for record in records]
    interval = AGGREGATES[metric.name].compute(answers)
    if interval is None:
        return None
    low, high = _told(metric.kind, interval)
    failed = sum(record.outcome == "failed" for record in records)
    mean, n = interval.mean, interval.n
    return Figure(mean, low, high, n, None, len(records) - failed, 0, failed, metric.kind)


def _scored(record: Record) -> Scored:
    failed = record.outcome == "failed"
    return Scored(item_from_json(record.item), None if failed else Answered.of(record))
