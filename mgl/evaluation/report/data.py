"""A report as data: chapters of tables and plots, which writers turn into a format.

    >>> Table("Scores", ("method", "f1"), ((Cell("direct"), Cell("41.2", "30.1 to 52.9")),)).folded
    False

A cell is a text for readers, with the number behind it (``datum``) for programs. Shares and scores
are shown in percent, and are 0 to 1 in the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mgl.evaluation.report.frame import Figure
from mgl.evaluation.statistics import Interval

__all__ = [
    "COLUMNS",
    "NONE",
    "Cell",
    "Chapter",
    "Plot",
    "Question",
    "Report",
    "Table",
    "figure_cell",
    "interval_cell",
    "number",
]

NONE: Final = "–"

COLUMNS: Final = (
    "chapter kind quantity method model part value low high n failed missing least most spread "
    "other p p_corrected test source"
).split()
"""What is said of each number. ``chapter`` is the benchmark's heading, ``kind`` what the number is
(score, difference, cost, print, agreement), ``part`` the items it is of, empty for all; ``other``
is the method that ``method`` is compared with, ``source`` where a printed number stands."""

Datum = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """``text`` and, more quietly, what is said ``beside`` it; ``span`` is (low, mean, high) of 1,
    to be drawn."""

    text: str
    beside: str = ""
    span: tuple[float, float, float] | None = None
    datum: Datum | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are as long as ``head``; a ``folded`` table is one that most readers skip."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    folded: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.head) for row in self.rows):
            raise ValueError(f"a row of {self.title!r} is not as long as its head")


@dataclass(frozen=True, slots=True)
class Plot:
    """An SVG drawing; ``name`` can be a file's."""

    name: str
    title: str
    about: str
    svg: str


@dataclass(frozen=True, slots=True)
class Question:
    """One item of the benchmark, and what came of it.

    ``answers`` has an entry a method: its label, its answer with scores and verdicts, the passages
    that it read, and whether it is ``right``, ``wrong``, ``unsure`` (its score is missing) or
    ``failed``. ``kind`` is ``right``, ``wrong`` or ``unsure`` if that holds for all methods, and
    ``split`` if some are right and others wrong. ``evidence`` has the passages that hold the
    answer.
    """

    id: str
    text: str
    about: str
    golds: tuple[str, ...]
    kind: str
    evidence: tuple[tuple[str, str], ...]
    answers: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Chapter:
    """What one benchmark's runs show: the ``headline`` sentence, notes, tables and plots, and the
    questions one by one."""

    title: str
    headline: str
    notes: tuple[str, ...]
    blocks: tuple[Table | Plot, ...]
    questions: tuple[Question, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """Chapters by benchmark; ``reading`` says how figures are to be read."""

    title: str
    chapters: tuple[Chapter, ...]
    reading: tuple[str, ...] = field(default=())

    def plots(self) -> Iterator[Plot]:
        for chapter in self.chapters:
            yield from (block for block in chapter.blocks if isinstance(block, Plot))

    def data(self) -> Iterator[dict[str, Any]]:
        """Yield every number with its chapter."""
        for chapter in self.chapters:
            for table in chapter.blocks:
                for row in table.rows if isinstance(table, Table) else ():
                    for cell in row:
                        if cell.datum is not None:
                            yield {"chapter": chapter.title, **cell.datum}


def number(value: float, unit: str = "%") -> str:
    """Write a number as readers see it: scores of 100, counts without decimals where large."""
    if unit == "%":
        return f"{100 * value:.1f}"
    return (
        f"{value:.2f}"
        if abs(value) < 10
        else f"{value:,.1f}"
        if abs(value) < 1000
        else f"{value:,.0f}"
    )


def interval_cell(
    interval: Interval, beside: str = "", unit: str = "%", *, signed: bool = False, **datum: Any
) -> Cell:
    """Show an interval, and keep it as a datum."""
    text = number(interval.mean, unit)
    if signed and interval.mean > 0:
        text = f"+{text}"
    ends = f"[{number(interval.low, unit)}, {number(interval.high, unit)}]"
    parts = [ends if interval.low < interval.high else "no interval", f"n {interval.n:,}", beside]
    span = None
    if unit == "%" and not signed and 0 <= interval.low < interval.high <= 1:
        span = interval.low, interval.mean, interval.high
    values = {"value": interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}
    return Cell(text, " · ".join(filter(None, parts)), span, {**values, **datum})


def figure_cell(figure: Figure | None, **datum: Any) -> Cell:
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
    facts = {
        name: getattr(figure, name) for name in ("failed", "missing", "least", "most", "spread")
    }
    kind = "cost" if figure.metric.kind == "cost" else "score"
    common = {"kind": kind, "quantity": figure.metric.name, **facts, **datum}
    return interval_cell(figure.interval, " · ".join(beside), unit, **common)
