"""Tables of a report: cells with a text for readers and the number behind it for programs.

    >>> Table("Scores", ("method", "f1"), ((Cell("direct"), Cell("41.2", "n 20")),)).folded
    False

Shares and scores are shown in percent, and are 0 to 1 in the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from mgl.evaluation.report.frame import Figure
from mgl.evaluation.statistics import Interval

__all__ = ["COLUMNS", "NONE", "Cell", "Table", "figure_cell", "interval_cell", "number"]

NONE: Final = "–"

COLUMNS: Final = (
    "chapter kind quantity method model part value low high n failed missing least most spread "
    "other p p_corrected test source"
).split()
"""What is said of each number. ``chapter`` is the benchmark's heading, ``kind`` what the number is
(score, difference, cost, print, agreement), ``part`` the items it is of, empty for all; ``other``
is the method that ``method`` is compared with, ``source`` where a printed number stands."""


@dataclass(frozen=True, slots=True)
class Cell:
    """``text`` and, more quietly, what is said ``beside`` it; ``span`` is (low, mean, high) of 1,
    to be drawn; ``datum`` has some of ``COLUMNS``."""

    text: str
    beside: str = ""
    span: tuple[float, float, float] | None = None
    datum: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Table:
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
    interval: Interval, beside: str = "", unit: str = "%", *, signed: bool = False, **datum: Any
) -> Cell:
    """Show an interval, and keep it as a datum."""
    plus = "+" if signed and interval.mean > 0 else ""
    ends = f"[{number(interval.low, unit)}, {number(interval.high, unit)}]"
    parts = [ends if interval.low < interval.high else "no interval", f"n {interval.n:,}", beside]
    span = None
    if unit == "%" and not signed and 0 <= interval.low < interval.high <= 1:
        span = interval.low, interval.mean, interval.high
    values = {"value": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}
    text = plus + number(interval.mean, unit)
    return Cell(text, " · ".join(filter(None, parts)), span, {**values, **datum})


def figure_cell(figure: Figure | None, **datum: Any) -> Cell:
    """Show a figure with its interval, n, and bounds for what is missing."""
    if figure is None:
        return Cell(NONE)
    metric, beside = figure.metric, []
    if figure.failed:
        beside.append(f"{figure.failed} failed")
    if figure.least is not None and figure.most is not None:
        bounds = f"{number(figure.least, metric.unit)} to {number(figure.most, metric.unit)}"
        beside.append(f"{figure.missing} missing: {bounds} with them")
    if figure.spread is not None:
        beside.append(f"± {number(figure.spread, metric.unit)} between repeats")
    facts = {name: value for name, value in asdict(figure).items() if name in COLUMNS}
    kind = "cost" if metric.kind == "cost" else "score"
    common = {"kind": kind, "quantity": metric.name, **facts, **datum}
    return interval_cell(figure.interval, " · ".join(beside), metric.unit, **common)
