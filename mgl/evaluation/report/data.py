"""A report as data: chapters of tables and plots, which writers turn into a format.

    >>> Table("Scores", ("method", "f1"), ((Cell("direct"), Cell("41.2", "[30.1, 52.9]")),)).folded
    False

A cell is a text for readers, with the numbers behind it (``data``) for programs. Shares and scores
are shown in percent, and are 0 to 1 in the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

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
    "empty_cell",
    "number_cell",
    "percent",
    "percent_interval",
    "share_cell",
]

NONE: Final = "–"


@dataclass(frozen=True, slots=True)
class Datum:
    """One figure with everything that says what it is.

    ``chapter`` is the benchmark's heading, ``kind`` what the figure is (score, difference, cost,
    size, tools, print, agreement), ``part`` the items it is of, empty for all. ``other`` is the
    method that ``method`` is compared with, ``source`` where a printed number stands.
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
    """``text``, its ``interval``, and what is said more quietly ``beside`` it.

    ``span`` is (low, mean, high) of 1, to be drawn. ``quiet`` marks a cell without content.
    """

    text: str
    interval: str = ""
    beside: str = ""
    span: tuple[float, float, float] | None = None
    quiet: bool = False
    data: tuple[Datum, ...] = ()


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
class Chapter:
    """What one benchmark's runs show; ``notes`` come first."""

    title: str
    notes: tuple[str, ...]
    blocks: tuple[Table | Plot, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """``reading`` explains how to read its figures."""

    title: str
    chapters: tuple[Chapter, ...]
    reading: tuple[str, ...]

    def data(self) -> Iterator[Datum]:
        """Yield every figure, in the order of the report."""
        for chapter in self.chapters:
            for block in chapter.blocks:
                rows = block.rows if isinstance(block, Table) else ()
                for datum in (each for row in rows for cell in row for each in cell.data):
                    yield replace(datum, chapter=chapter.title)

    def plots(self) -> Iterator[Plot]:
        """Yield every plot, in the order of the report."""
        for chapter in self.chapters:
            yield from (block for block in chapter.blocks if isinstance(block, Plot))


def percent(value: float) -> str:
    """Show a number of 1 as one of 100, without the sign."""
    return f"{100 * value:.1f}"


def percent_interval(low: float, high: float) -> str:
    return f"[{percent(low)}, {percent(high)}]"


def empty_cell() -> Cell:
    return Cell(NONE, quiet=True)


def difference_cell(interval: Interval) -> Cell:
    """Show a difference of two means with its sign."""
    mean, low, high = (_with_sign(end) for end in (interval.mean, interval.low, interval.high))
    return Cell(mean, f"[{low}, {high}]", f"n {interval.n:,}")


def share_cell(kind: str, quantity: str, share: Interval, of: Datum) -> Cell:
    """Show a share that is not a score, with its interval and n."""
    low, mean, high, n = share.low, share.mean, share.high, share.n
    datum = replace(of, kind=kind, quantity=quantity, value=mean, low=low, high=high, n=n)
    span = (low, mean, high)
    return Cell(percent(mean), percent_interval(low, high), f"n {n:,}", span, data=(datum,))


def number_cell(
    kind: str,
    quantity: str,
    value: float | None,
    of: Datum,
    *,
    n: int | None = None,
    digits: int = 0,
) -> Cell:
    """Show a plain number; a dash for None."""
    if value is None:
        return empty_cell()
    datum = replace(of, kind=kind, quantity=quantity, value=value, n=n)
    return Cell(f"{value:,.{digits}f}", data=(datum,))


def _with_sign(value: float) -> str:
    text = f"{100 * value:+.1f}"
    return "0.0" if text in ("-0.0", "+0.0") else text.replace("-", "−")
