"""Plots of runs as SVG, each if the runs vary what it shows (matplotlib, extra ``evaluation``).

| plot | after |
|---|---|
| the first score against the compaction ratio | MindGraph Fig. 3 |
| nodes of a memory against tokens of its source | MindGraph Fig. 4 |
| lookups of an answer against nodes of its graph | MindGraph §5.4 |
| the first score by an option | HGMem Fig. 3, Mnemis Fig. 3, GAM Fig. 3 to 6 (``PRINTED``) |

By an option are shown methods of one memory and model that differ in it and in nothing else. The
same data give the same SVG, on a transparent ground; a dark page inverts it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any, Final

from mgl.errors import UsageError
from mgl.evaluation.report.costs import list_tool_uses, score_measures
from mgl.evaluation.report.data import Plot
from mgl.evaluation.report.figures import Figure, Metric, compute_figure, is_measured
from mgl.evaluation.report.runs import Group, Series

__all__ = ["draw_plots"]

PRINTED: Final[Mapping[tuple[str, str], str]] = {
    ("hgmem", "steps"): "HGMem Fig. 3",
    ("mnemis", "k"): "Mnemis Fig. 3",
    ("gam", "partition"): "GAM Fig. 3",
    ("gam", "noise"): "GAM Fig. 4",
    ("gam", "beta_time"): "GAM Fig. 5",
    ("gam", "beta_role"): "GAM Fig. 5",
    ("gam", "beta_conf"): "GAM Fig. 5",
    ("gam", "k"): "GAM Fig. 6",
    ("gam", "anchors"): "GAM Fig. 6",
}
COMPACTION: Final = Metric("compaction_ratio", "mean")
COLOURS: Final = "#2a6fb5 #b5530d #2b7a4b #7b4db8 #b8325c #0d7a86 #7c6a00 #56616d".split()
MARKS: Final = "osD^vPX*"
STYLE: Final = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dcd9d1",
    "legend.frameon": False,
    "text.parse_math": False,
    "savefig.transparent": True,
}
MOST_TICKS: Final = 9
MARGIN: Final = 1.6


def draw_plots(group: Group, metrics: Sequence[Metric], name: str) -> list[Plot]:
    """Draw what a group has something for, with names that begin with ``name``; UsageError without
    matplotlib."""
    worth = [metric for metric in metrics if not metric.is_measure]
    found = [_plot_sizes(group, name), _plot_lookups(group, name)]
    if worth:
        sweeps = _plot_options(group, worth[0], name)
        found = [_plot_compaction(group, worth[0], name), *found, *sweeps]
    return [plot for plot in found if plot is not None]


def _plot_compaction(group: Group, metric: Metric, name: str) -> Plot | None:
    points: list[tuple[str, Figure, Figure]] = []
    for series in group.series:
        ratio = compute_figure(COMPACTION, score_measures(series))
        score = _score(series, metric)
        if ratio is not None and score is not None and ratio.mean > 0:
            points.append((series.label, ratio, score))
    if len(points) < 2:
        return None
    axes = ("compaction ratio, % (mean of an answer)", f"{metric.shown}, %")
    with _Drawing.open(f"{name}-compaction", *axes) as drawing:
        ends: list[float] = []
        for place, (label, ratio, score) in enumerate(points):
            ends += _scale(ratio)
            drawing.bars(place, label, [ratio], [score])
        drawing.axes.set_xlim(min(ends) / MARGIN, max(ends) * MARGIN)
        drawing.axes.set_xscale("log")
        drawing.axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        drawing.axes.xaxis.set_minor_formatter(lambda _value, _place: "")
    return drawing.plot(
        "Score against compaction",
        f"After MindGraph Fig. 3. Up and to the left is better. Bars are 95% intervals, n = "
        f"{max(score.n for _, _, score in points)}.",
    )


def _plot_sizes(group: Group, name: str) -> Plot | None:
    points = {
        series.label: [
            (float(each["tokens"]), float(each["nodes"]))
            for each in (one.memory for one in (series.builds or series.records))
            if each.get("tokens") and each.get("nodes")
        ]
        for series in group.series
    }
    axes = ("tokens of the source", "nodes of the memory")
    about = ("Graph size against length", "After MindGraph Fig. 4. {} memories.")
    return _plot_points(f"{name}-sizes", axes, about, points)


def _plot_lookups(group: Group, name: str) -> Plot | None:
    uses = {series.label: list_tool_uses(series) for series in group.series}
    points = {
        label: [(float(one.nodes), float(one.lookups)) for one in own]
        for label, own in uses.items()
        if any(one.lookups for one in own)
    }
    axes = ("nodes of the graph", "lookups of an answer")
    about = ("Lookups against graph size", "After MindGraph §5.4. {} answers.")
    return _plot_points(f"{name}-lookups", axes, about, points)


def _plot_points(
    name: str,
    axes: tuple[str, str],
    about: tuple[str, str],
    points: Mapping[str, Sequence[tuple[float, float]]],
) -> Plot | None:
    """Plot those methods whose points lie at more than one place across; ``about`` is the title and
    a caption with a place for their number."""
    varied = {label: own for label, own in points.items() if len({at for at, _ in own}) > 1}
    if not varied:
        return None
    with _Drawing.open(name, *axes) as drawing:
        for place, (label, own) in enumerate(varied.items()):
            style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
            drawing.axes.scatter(*zip(*own, strict=True), label=label, alpha=0.8, s=24, **style)
    return drawing.plot(about[0], about[1].format(sum(map(len, varied.values()))))


def _plot_options(group: Group, metric: Metric, name: str) -> Iterator[Plot]:
    """A plot for each memory and option, with a line for each way that all else is set."""
    for memory in dict.fromkeys(series.method.memory for series in group.series):
        own = [series for series in group.series if series.method.memory == memory]
        for option in dict.fromkeys(each for series in own for each in series.method.config):
            lines = _find_lines(own, option)
            if lines:
                yield _plot_option(f"{name}-{memory}-{option}", metric, memory, option, lines)


def _find_lines(series: Sequence[Series], option: str) -> dict[str, list[Series]]:
    """Group those that differ in this option alone, in its order; runs made before the option
    existed are left out."""
    alike: dict[str, list[Series]] = {}
    for each in series:
        if option not in each.method.config:
            continue
        rest = {name: value for name, value in each.method.config.items() if name != option}
        common = [each.method.model, each.questions, each.embedder, each.reranker, rest]
        alike.setdefault(json.dumps(common, sort_keys=True), []).append(each)
    found: dict[str, list[Series]] = {}
    for own in alike.values():
        if len({json.dumps(each.method.config[option]) for each in own}) > 1:
            numeric = all(_is_number(each.method.config[option]) for each in own)
            ordered = sorted(own, key=lambda one: one.method.config[option]) if numeric else own
            found[f"{ordered[0].method.model}, {ordered[0].label} …"] = ordered
    return found


def _plot_option(
    name: str, metric: Metric, memory: str, option: str, lines: Mapping[str, Sequence[Series]]
) -> Plot:
    values = [series.method.config[option] for own in lines.values() for series in own]
    names = None if all(map(_is_number, values)) else list(dict.fromkeys(map(str, values)))
    sizes: set[int] = set()
    with _Drawing.open(name, f"{option} of {memory}", f"{metric.shown}, %") as drawing:
        for place, (label, own) in enumerate(lines.items()):
            at, scores = [], []
            for series in own:
                score, value = _score(series, metric), series.method.config[option]
                if score is not None:
                    at.append(names.index(str(value)) if names else float(value))
                    scores.append(score)
            sizes.update(score.n for score in scores)
            shown = label if len(lines) > 1 else ""
            drawing.bars(place, shown, at, scores, line="none" if names else "-")
        ticks = sorted({float(value) for value in values}) if names is None else []
        if names is not None:
            drawing.axes.set_xticks(range(len(names)), names)
            drawing.axes.set_xlim(-0.5, len(names) - 0.5)
        elif len(ticks) <= MOST_TICKS:
            drawing.axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
    after = PRINTED.get((memory, option))
    about = f"n = {max(sizes, default=0)} a point, with 95% intervals."
    title = f"{metric.shown} by {option} of {memory}"
    return drawing.plot(title, f"After {after}. {about}" if after else about)


def _score(series: Series, metric: Metric) -> Figure | None:
    return compute_figure(metric, series.records) if is_measured(metric, series.records) else None


def _scale(figure: Figure) -> tuple[float, float, float]:
    """Low, mean and high in percent; the mean in their place if there is no interval."""
    low = figure.mean if figure.low is None else figure.low
    high = figure.mean if figure.high is None else figure.high
    return 100 * low, 100 * figure.mean, 100 * high


def _reach(bars: Sequence[tuple[float, float, float]]) -> tuple[list[float], list[float]]:
    """How far intervals reach below and above their means."""
    return [max(0.0, b - a) for a, b, _ in bars], [max(0.0, c - b) for _, b, c in bars]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Drawing:
    """A matplotlib figure whose ``axes`` are drawn on while it is open, and then an SVG."""

    def __init__(self, name: str, axes: Any) -> None:
        self.name, self.axes = re.sub(r"[^A-Za-z0-9_.-]+", "-", name), axes
        self._svg = ""

    @classmethod
    @contextmanager
    def open(cls, name: str, across: str, up: str) -> Iterator[_Drawing]:
        try:
            import matplotlib
            from matplotlib.figure import Figure as Canvas
        except ImportError as error:
            raise UsageError(
                "plots need matplotlib", hint="python -m pip install 'mgl[evaluation]'"
            ) from error
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
            canvas = Canvas(figsize=(6.4, 3.9), layout="constrained")
            drawing = cls(name, canvas.add_subplot())
            drawing.axes.set_xlabel(across)
            drawing.axes.set_ylabel(up)
            yield drawing
            if drawing.axes.get_legend_handles_labels()[1]:
                drawing.axes.legend(loc="best", fontsize=9)
            drawing.axes.set_ylim(bottom=0)
            out = StringIO()
            canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
            drawing._svg = out.getvalue()

    def bars(
        self,
        place: int,
        label: str,
        at: Sequence[Figure] | Sequence[float],
        scores: Sequence[Figure],
        *,
        line: str = "none",
    ) -> None:
        """Draw points with their intervals, across too where ``at`` holds figures."""
        across = [_scale(each) for each in at if isinstance(each, Figure)]
        up = [_scale(score) for score in scores]
        self.axes.errorbar(
            [mean for _, mean, _ in across] or at,
            [mean for _, mean, _ in up],
            xerr=_reach(across) if across else None,
            yerr=_reach(up),
            color=COLOURS[place % len(COLOURS)],
            marker=MARKS[place % len(MARKS)],
            linestyle=line,
            elinewidth=1.1,
            capsize=3,
            label=label or None,
        )

    def plot(self, title: str, about: str) -> Plot:
        """The drawing, with ids that no other plot of a page has."""
        svg = re.sub(r'\bid="', f'id="{self.name}-', self._svg)
        svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{self.name}-", svg)
        return Plot(self.name, title, about, svg)
