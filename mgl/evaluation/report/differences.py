"""Which methods are told apart: every two of a group on the same items, corrected for how many.

Tested is what reports show first: the benchmark's first scorer, and its judge. The differences of
all benchmarks of a report are one family (Holm). Two methods are told apart where the corrected p
is at most 0.05 and the interval of the difference does not hold 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from mgl.evaluation.report.figures import Metric, measured
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.report.tables import Cell, Datum, Table, difference_cell
from mgl.evaluation.statistics import Paired, compare_pairs, correct_holm

__all__ = ["Comparison", "compared", "difference_table", "with_holm"]

LEVEL: Final = 0.05
HEAD: Final = ("methods", "metric", "difference, points", "p", "p, corrected", "what it shows")


@dataclass(frozen=True, slots=True)
class Comparison:
    """``one`` less ``other``. ``corrected`` is the p-value among those of the whole report."""

    one: str
    other: str
    metric: str
    shown: str
    found: Paired
    corrected: float = 1.0

    @property
    def apart(self) -> bool:
        interval = self.found.difference
        return self.corrected <= LEVEL and not interval.low <= 0 <= interval.high

    @property
    def verdict(self) -> str:
        """What may be said of the two methods."""
        interval = self.found.difference
        if self.apart:
            return f"{self.one if interval.mean > 0 else self.other} is higher"
        why = [
            *(["the interval holds 0"] if interval.low <= 0 <= interval.high else []),
            *([f"the corrected p is above {LEVEL}"] if self.corrected > LEVEL else []),
        ]
        return f"not told apart: {' and '.join(why)}"


def compared(group: Group, metrics: Sequence[Metric]) -> list[Comparison]:
    """Every two methods of a group, not corrected yet; UsageError where scipy is missing."""
    tested = [each for each in metrics if not each.measure and each.kind != "together"]
    first = [each for place, each in enumerate(tested) if place == 0 or each.judged]
    return [
        found
        for metric in first
        for one, other in combinations(
            [each for each in group.series if measured(metric, each.records)], 2
        )
        if (found := _compared(metric, one, other)) is not None
    ]


def with_holm(families: Sequence[Sequence[Comparison]]) -> list[list[Comparison]]:
    """The comparisons of all groups with the p-values corrected for all of them together."""
    corrected = iter(correct_holm([each.found.p for family in families for each in family]))
    return [[replace(each, corrected=next(corrected)) for each in family] for family in families]


def difference_table(comparisons: Sequence[Comparison], family: int) -> Table:
    """The comparisons of one group; ``family`` is how many the report makes."""
    tests = {
        "mcnemar": "McNemar's exact test on shares",
        "sign_flip": "sign flips on means",
    }
    used = [told for test, told in tests.items() if any(c.found.test == test for c in comparisons)]
    return Table(
        "Differences on the same items",
        HEAD,
        tuple(_row(each) for each in comparisons),
        (
            f"Two-sided, paired item by item: {'; '.join(used)}. Corrected by Holm for the "
            f"{family} comparisons of this report. Items count as independent; the questions of "
            "one source are not quite, so the true uncertainty is larger.",
        ),
    )


def _compared(metric: Metric, one: Series, other: Series) -> Comparison | None:
    left, right = one.by_item, other.by_item
    items = [
        item
        for item in left
        if item in right and metric.counts(left[item]) and metric.counts(right[item])
    ]
    if not items:
        return None
    found = compare_pairs(
        [left[item].value(metric.name) or 0.0 for item in items],
        [right[item].value(metric.name) or 0.0 for item in items],
        "share" if metric.kind == "share" else "mean",
    )
    return Comparison(one.label, other.label, metric.name, metric.shown, found)


def _row(each: Comparison) -> tuple[Cell, ...]:
    interval = each.found.difference
    datum = Datum(
        "difference",
        each.metric,
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
    return (
        Cell(f"{each.one} − {each.other}"),
        Cell(each.shown),
        replace(difference_cell(interval), data=(datum,)),
        Cell(_p(each.found.p)),
        Cell(_p(each.corrected)),
        Cell(each.verdict, quiet=not each.apart),
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
