"""Tables of a report: cells with a text for readers and the interval behind it for programs.

    >>> ReportTable("Scores", ("method", "f1"), ((Cell("direct"), Cell("41.2", "n 20")),)).folded
    False

Shares and scores are shown in percent; their intervals are of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mgl.evaluation.report.frame import Figure
from mgl.evaluation.statistics import Interval

NONE: Final = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """``text`` and, more quietly, what is said ``beside`` it. The ``interval`` is drawn if it is of
    a share."""

    text: str
    beside: str = ""
    interval: Interval | None = None
    drawn: bool = False


@dataclass(frozen=True, slots=True)
class ReportTable:
    """Rows are as long as ``head``; a ``folded`` table is one that most readers skip."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    folded: bool = False


def number(value: float, unit: str = "%") -> str:
    """Write a number as readers see it: scores of 100, counts without decimals where large."""
    if unit == "%":
        return f"{100 * value:.1f}"
    decimals = 2 if abs(value) < 10 else 1 if abs(value) < 1000 else 0
    return f"{value:,.{decimals}f}"


def interval_cell(
    interval: Interval, beside: str = "", unit: str = "%", *, signed: bool = False
) -> Cell:
    """Show an interval, with n."""
    low, mean, high = interval.low, interval.mean, interval.high
    plus = "+" if signed and mean > 0 else ""
    ends = f"[{number(low, unit)}, {number(high, unit)}]" if low < high else "no interval"
    told = " · ".join(filter(None, (ends, f"n {interval.n:,}", beside)))
    drawn = unit == "%" and not signed and 0 <= low < high <= 1
    return Cell(plus + number(mean, unit), told, interval, drawn)


def figure_cell(figure: Figure | None) -> Cell:
    """Show a figure with its interval, n, and bounds for what is missing."""
    if figure is None:
        return Cell(NONE)
    unit, beside = figure.metric.unit, []
    if figure.failed:
        beside.append(f"{figure.failed} failed")
    if figure.least is not None and figure.most is not None:
        bounds = f"{number(figure.least, unit)} to {number(figure.most, unit)}"
        beside.append(f"{figure.missing} missing: {bounds} with them")
    if figure.spread is not None:
        beside.append(f"± {number(figure.spread, unit)} between repeats")
    return interval_cell(figure.interval, " · ".join(beside), unit)
