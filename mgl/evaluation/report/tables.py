"""A report as data: chapters of tables and plots, which writers put into a format.

    >>> Table("Scores", ("method", "f1"), ((Cell("direct"), Cell("41.2", "[30.1, 52.9]")),)).folded
    False

A cell is a text for readers, and the numbers behind it (``data``) for programs. What is a share or
a score is shown in percent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from mgl.evaluation.report.figures import Figure
from mgl.evaluation.report.runs import Series
from mgl.evaluation.statistics import Interval

__all__ = [
    "NONE",
    "Cell",
    "Chapter",
    "Datum",
    "Plot",
    "Report",
    "Table",
    "difference_cell",
    "number_cell",
    "percent",
    "score_cell",
    "share_cell",
    "who",
]

NONE: Final = "–"


@dataclass(frozen=True, slots=True)
class Datum:
    """One figure with all that says what it is; scores and shares are of 1, not of 100.

    ``chapter`` is the benchmark's heading, ``kind`` what the figure is (score, difference, cost,
    size, tools, print, agreement), ``part`` the items that it is of, all where it is empty.
    ``other`` is the method that ``method`` is compared with, ``source`` where a printed number
    stands.
    """

    kind: str
    quantity: str
    value: float
    method: str = ""
    model: str = ""
    chapter: str = ""
    part: str = ""
    low: float | None = None
    high: float | None = None
    n: int | None = None
    of_scored: float | None = None
    scored: int | None = None
    unscored: int | None = None
    failed: int | None = None
    other: str = ""
    p: float | None = None
    p_corrected: float | None = None
    test: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """``text``, its ``interval``, and what is told more quietly ``beside`` it.

    ``span`` is (low, mean, high) of 1, to be drawn. ``quiet`` says that there is nothing to read.
    """

    text: str
    interval: str = ""
    beside: str = ""
    span: tuple[float, float, float] | None = None
    quiet: bool = False
    data: tuple[Datum, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Rows are as long as ``head``; ``folded`` is what most readers can pass over."""

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
    """``name`` is good for a file; ``svg`` has colours of its own, which ``mgl.evaluation.report.
    plots`` puts right for a page or for paper."""

    name: str
    title: str
    about: str
    svg: str


@dataclass(frozen=True, slots=True)
class Chapter:
    """What one benchmark's runs have shown; ``notes`` come first."""

    title: str
    notes: tuple[str, ...]
    blocks: tuple[Table | Plot, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """``reading`` says how its figures are to be read."""

    title: str
    notes: tuple[str, ...]
    chapters: tuple[Chapter, ...]
    reading: tuple[str, ...]

    def data(self) -> Iterator[Datum]:
        """Every figure, in the order of the report."""
        for chapter in self.chapters:
            for block in chapter.blocks:
                rows = block.rows if isinstance(block, Table) else ()
                for datum in (each for row in rows for cell in row for each in cell.data):
                    yield replace(datum, chapter=chapter.title)

    def plots(self) -> Iterator[Plot]:
        """Every plot, in the order of the report."""
        for chapter in self.chapters:
            yield from (block for block in chapter.blocks if isinstance(block, Plot))


def percent(value: float) -> str:
    """A number of 1 as one of 100, without its sign."""
    return f"{100 * value:.1f}"


def who(series: Series, part: str = "") -> Datum:
    """A figure of a method that is not told yet; ``part`` is what it is of."""
    return Datum("", "", 0.0, method=series.label, model=series.method.model, part=part)


def score_cell(figure: Figure | None, quantity: str, of: Datum) -> Cell:
    """A figure with its interval, n, and the mean over what was scored."""
    if figure is None:
        return Cell(NONE, quiet=True)
    told = [f"n {figure.n:,}"]
    if figure.few:
        told.append("few")
    if figure.of_scored is not None and figure.scored < figure.n:
        told.append(f"{figure.scored} scored: {percent(figure.of_scored)}")
    ends, span = "no interval", None
    if figure.low is not None and figure.high is not None:
        ends = f"[{percent(figure.low)}, {percent(figure.high)}]"
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
    return Cell(percent(figure.mean), ends, " · ".join(told), span, data=(datum,))


def difference_cell(interval: Interval) -> Cell:
    """A difference of two means, with its sign."""
    mean, low, high = (_signed(end) for end in (interval.mean, interval.low, interval.high))
    return Cell(mean, f"[{low}, {high}]", f"n {interval.n:,}")


def share_cell(kind: str, quantity: str, share: Interval, of: Datum) -> Cell:
    """A share that is no score, with its interval and n."""
    low, mean, high, n = share.low, share.mean, share.high, share.n
    datum = replace(of, kind=kind, quantity=quantity, value=mean, low=low, high=high, n=n)
    ends = f"[{percent(low)}, {percent(high)}]"
    return Cell(percent(mean), ends, f"n {n:,}", (low, mean, high), data=(datum,))


def number_cell(
    kind: str,
    quantity: str,
    value: float | None,
    of: Datum,
    *,
    n: int | None = None,
    digits: int = 0,
) -> Cell:
    """A plain number; a dash where there is none."""
    if value is None:
        return Cell(NONE, quiet=True)
    datum = replace(of, kind=kind, quantity=quantity, value=value, n=n)
    return Cell(f"{value:,.{digits}f}", data=(datum,))


def _signed(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text.replace("-", "−")
