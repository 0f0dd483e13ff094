"""One plot, drawn by matplotlib as an SVG whose colours are put right afterwards.

    >>> drawing = Drawing("sizes", "tokens", "nodes")               # doctest: +SKIP
    >>> drawing.cloud(0, "mindgraph", [(1000, 12), (2000, 15)])     # doctest: +SKIP
    >>> for_paper(drawing.plot("Sizes", "Two memories.").svg)       # doctest: +SKIP

The colours that it is drawn with stand for names: ``for_page`` makes them the page's own, which
follow light and dark, ``for_paper`` those of the light page. The same data give the same SVG.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any, Final

from mgl.errors import UsageError
from mgl.evaluation.report.tables import Plot

__all__ = ["Drawing", "for_page", "for_paper"]

INK, QUIET, RULE = "#010101", "#020202", "#030303"
LINES: Final = tuple(f"#0404{number:02x}" for number in range(8))
MARKS: Final = "osD^vPX*"
PAPER: Final[Mapping[str, tuple[str, str]]] = {
    INK: ("ink", "#20242a"),
    QUIET: ("quiet", "#5a626c"),
    RULE: ("rule", "#dcd9d1"),
    **{
        drawn: (f"k{number}", colour)
        for number, (drawn, colour) in enumerate(
            zip(
                LINES,
                "#2a6fb5 #b5530d #2b7a4b #7b4db8 #b8325c #0d7a86 #7c6a00 #56616d".split(),
                strict=True,
            )
        )
    },
}
STYLE: Final = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": RULE,
    "grid.linewidth": 0.7,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "legend.frameon": False,
    "text.parse_math": False,
}
MOST_TICKS: Final = 9
MARGIN: Final = 1.6
Bar = tuple[float, float, float]


class Drawing:
    """A plot with its axes; ``names`` are the values across where they are no numbers."""

    def __init__(
        self,
        name: str,
        across: str,
        up: str,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        """UsageError where matplotlib is not installed."""
        self._name = name
        self._reach: list[float] = []
        self._taken: set[float] = set()
        self._matplotlib = _matplotlib()
        with self._matplotlib.rc_context(STYLE):
            from matplotlib.figure import Figure

            self._figure = Figure(figsize=(6.4, 3.9), layout="constrained")
            self._figure.patch.set_alpha(0)
            self._axes: Any = self._figure.add_subplot()
            self._axes.patch.set_alpha(0)
            self._axes.set_xlabel(across)
            self._axes.set_ylabel(up)
            if names is not None:
                self._axes.set_xticks(range(len(names)), names)
                self._axes.set_xlim(-0.5, len(names) - 0.5)

    def point(self, place: int, label: str, at: Bar, score: Bar) -> None:
        """One point with its interval both ways, and its label, over numbers above 0, whose
        logarithms are drawn."""
        self._reach += (at[0], at[2])
        self._bars(place, [at[1]], [score], across=[at], label=label)

    def line(
        self, place: int, label: str, points: Sequence[tuple[float, Bar]], *, joined: bool
    ) -> None:
        """Points with their intervals up and down, ``joined`` where what is across is a number."""
        if joined:
            self._taken.update(at for at, _ in points)
        self._bars(
            place, [at for at, _ in points], [bar for _, bar in points], label=label, joined=joined
        )

    def cloud(self, place: int, label: str, points: Sequence[tuple[float, float]]) -> None:
        """Points alone."""
        with self._matplotlib.rc_context(STYLE):
            self._axes.scatter(
                [across for across, _ in points],
                [up for _, up in points],
                s=24,
                color=LINES[place % len(LINES)],
                marker=MARKS[place % len(MARKS)],
                alpha=0.8,
                linewidths=0,
                label=label,
            )

    def plot(self, title: str, about: str) -> Plot:
        """What was drawn."""
        with self._matplotlib.rc_context({**STYLE, "svg.hashsalt": self._name}):
            if len(self._axes.get_legend_handles_labels()[1]) > 0:
                self._axes.legend(loc="best", fontsize=9)
            if 0 < len(self._taken) <= MOST_TICKS:
                ticks = sorted(self._taken)
                self._axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
            if self._reach:
                self._axes.set_xlim(min(self._reach) / MARGIN, max(self._reach) * MARGIN)
                self._axes.set_xscale("log")
                self._axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
                self._axes.xaxis.set_minor_formatter(lambda _value, _place: "")
            self._axes.set_ylim(bottom=0)
            out = StringIO()
            self._figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", self._name)
        return Plot(name, title, about, _own_ids(out.getvalue(), name))

    def _bars(
        self,
        place: int,
        at: Sequence[float],
        bars: Sequence[Bar],
        *,
        label: str,
        across: Sequence[Bar] | None = None,
        joined: bool = False,
    ) -> None:
        with self._matplotlib.rc_context(STYLE):
            self._axes.errorbar(
                at,
                [mean for _, mean, _ in bars],
                yerr=_lengths(bars),
                xerr=None if across is None else _lengths(across),
                color=LINES[place % len(LINES)],
                marker=MARKS[place % len(MARKS)],
                markersize=6,
                linestyle="-" if joined else "none",
                elinewidth=1.1,
                capsize=3,
                label=label or None,
            )


def for_page(svg: str) -> str:
    """The plot with the colours and the letters of the page that it stands in."""
    for drawn, (name, _) in PAPER.items():
        svg = svg.replace(drawn, f"var(--{name})")
    svg = re.sub(r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r'(<svg [^>]*?)width="[^"]*"|(<svg [^>]*?)height="[^"]*"', r"\1\2", svg).strip()


def for_paper(svg: str) -> str:
    """The plot with the colours of the light page, as a file of its own."""
    for drawn, (_, colour) in PAPER.items():
        svg = svg.replace(drawn, colour)
    return svg


def _lengths(bars: Sequence[Bar]) -> tuple[list[float], list[float]]:
    """How far intervals reach below and above their means."""
    return (
        [max(0.0, mean - low) for low, mean, _ in bars],
        [max(0.0, high - mean) for _, mean, high in bars],
    )


def _own_ids(svg: str, name: str) -> str:
    """No two plots of a page share an id."""
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise UsageError(
            "plots need matplotlib", hint="python -m pip install 'mgl[evaluation]'"
        ) from error
    return matplotlib
