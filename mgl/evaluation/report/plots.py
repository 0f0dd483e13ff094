"""Plots of runs as SVG, each if the runs have what it shows (matplotlib, extra ``evaluation``).

| plot | after |
|---|---|
| differences between methods, as a forest | |
| the headline against the tokens of a question | |
| the headline against the compaction ratio | MindGraph Fig. 3 |
| nodes of a memory against tokens of its source | MindGraph Fig. 4 |
| lookups of an answer against nodes of its graph | MindGraph §5.4 |
| the headline by an option | HGMem Fig. 3, Mnemis Fig. 3, GAM Fig. 3 to 6 |

By an option are shown methods of one memory and model that differ in it; what differs from a
curve's points in more is a point beside it, and other memories are lines across. The same data give
the same SVG, on a transparent ground; a dark page inverts it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from typing import Any, Final

from mgl.errors import UsageError, install_hint
from mgl.evaluation.report.data import Plot
from mgl.evaluation.report.frame import Figure, Frame, count_tools
from mgl.evaluation.report.runs import Series
from mgl.evaluation.report.tables import Comparison

__all__ = ["draw_plots"]

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
_MOST_PAIRS: Final = 30
_MARGIN: Final = 1.6
_GREY: Final = "#56616d"


def draw_plots(frame: Frame, comparisons: Sequence[Comparison], name: str) -> list[Plot]:
    """Draw what a group has something for, with names that begin with ``name``; UsageError without
    matplotlib."""
    found = [
        _plot_forest(frame, comparisons, f"{name}-differences"),
        _plot_against(frame, "question_tokens", f"{name}-cost"),
        _plot_against(frame, "compaction_ratio", f"{name}-compaction"),
        _plot_points(frame, f"{name}-sizes", "Graph size against length", _list_sizes),
        _plot_points(frame, f"{name}-lookups", "Lookups against graph size", _list_lookups),
        *_plot_options(frame, name),
    ]
    return [plot for plot in found if plot is not None]


def _plot_forest(frame: Frame, comparisons: Sequence[Comparison], name: str) -> Plot | None:
    shown = comparisons[:_MOST_PAIRS]
    if not shown:
        return None
    across = f"difference in {frame.headline.shown}, points"
    with _Drawing.open(name, across, "", height=1.0 + 0.34 * len(shown)) as drawing:
        for place, each in enumerate(reversed(shown)):
            interval = each.found.difference
            ends = [[100 * (interval.mean - interval.low)], [100 * (interval.high - interval.mean)]]
            drawing.axes.errorbar(
                [100 * interval.mean],
                [place],
                xerr=ends,
                color=COLOURS[0] if each.differs else _GREY,
                marker="o" if each.differs else "s",
                mfc=None if each.differs else "none",
                capsize=3,
            )
        drawing.axes.axvline(0, color=_GREY, linewidth=1)
        labels = [f"{each.one} − {each.other}" for each in reversed(shown)]
        drawing.axes.set_yticks(range(len(shown)), labels)
        drawing.axes.set_ylim(-0.6, len(shown) - 0.4)
    about = "95% intervals; filled where the two are told apart after correction."
    if len(comparisons) > len(shown):
        about += f" The first {len(shown)} of {len(comparisons)}."
    return drawing.plot("Differences between methods", about)


def _plot_against(frame: Frame, cost: str, name: str) -> Plot | None:
    """The headline of each method against one of its costs."""
    metric = frame.metrics[cost]
    points = []
    for series in frame.group.series:
        spent = frame.figure(series.label, metric)
        score = frame.figure(series.label, frame.headline)
        if spent is not None and score is not None and spent.interval.mean > 0:
            points.append((series.label, spent, score))
    if len(points) < 2:
        return None
    times = 100 if metric.unit == "%" else 1
    across = f"{metric.shown}, {'%' if times == 100 else metric.unit} (mean of an answer)"
    with _Drawing.open(name, across, f"{frame.headline.shown}, %") as drawing:
        for place, (label, own, score) in enumerate(points):
            drawing.bars(place, label, [times * own.interval.mean], [score])
        ends = [times * one.interval.mean for _, one, _ in points]
        drawing.axes.set_xlim(min(ends) / _MARGIN, max(ends) * _MARGIN)
        drawing.axes.set_xscale("log", subs=())
        drawing.axes.xaxis.get_major_locator().set_params(subs=(1, 2, 5))
        drawing.axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    after = "After MindGraph Fig. 3. " if cost == "compaction_ratio" else ""
    about = f"{after}Up and to the left is better. Bars are 95% intervals."
    return drawing.plot(f"Score against {metric.shown}", about)


def _list_sizes(series: Series) -> list[tuple[float, float]]:
    facts = [one.memory for one in (series.builds or series.records)]
    return [
        (float(each["tokens"]), float(each["nodes"]))
        for each in facts
        if each.get("tokens") and each.get("nodes")
    ]


def _list_lookups(series: Series) -> list[tuple[float, float]]:
    found = [
        (float(record.memory["nodes"]), float(count_tools(record.trace)["lookups"]))
        for record in series.records
        if series.method.memory == "mindgraph" and "nodes" in record.memory
    ]
    return found if any(lookups for _, lookups in found) else []


def _plot_points(frame: Frame, name: str, title: str, listed: Any) -> Plot | None:
    """Plot those methods whose points lie at more than one place across."""
    points = {series.label: listed(series) for series in frame.group.series}
    varied = {label: own for label, own in points.items() if len({at for at, _ in own}) > 1}
    if not varied:
        return None
    axes = {
        _list_sizes: ("tokens of the source", "nodes of the memory", "Fig. 4"),
        _list_lookups: ("nodes of the graph", "lookups of an answer", "§5.4"),
    }[listed]
    with _Drawing.open(name, *axes[:2]) as drawing:
        for place, (label, own) in enumerate(varied.items()):
            style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
            drawing.axes.scatter(*zip(*own, strict=True), label=label, alpha=0.8, s=24, **style)
        drawing.axes.set_ylim(bottom=0)
    return drawing.plot(
        title, f"After MindGraph {axes[2]}. {sum(map(len, varied.values()))} points."
    )


def _plot_options(frame: Frame, name: str) -> Iterator[Plot]:
    """A plot for each memory and option that its methods differ in, with a line for each way that
    all else is set."""
    every = frame.group.series
    for memory in dict.fromkeys(series.method.memory for series in every):
        own = [series for series in every if series.method.memory == memory]
        for option in dict.fromkeys(each for series in own for each in series.method.config):
            lines = _find_lines(own, option)
            if any(len(line) > 1 for line in lines):
                yield _plot_option(frame, f"{name}-{memory}-{option}", memory, option, lines)


def _find_lines(series: Sequence[Series], option: str) -> list[list[Series]]:
    """Group those that differ in this option alone, in its order. One that differs in more is a
    line of its own, if no line has its value."""
    alike: dict[str, list[Series]] = {}
    for each in series:
        if option in each.method.config:
            rest = {name: v for name, v in each.method.config.items() if name != option}
            common = [each.method.model, *each.retrieval, each.run.manifest.arguments.questions]
            alike.setdefault(json.dumps([*common, rest], sort_keys=True), []).append(each)
    lines = [own for own in alike.values() if len({_value(each, option) for each in own}) > 1]
    shown = {_value(each, option) for own in lines for each in own}
    if shown and not all(_is_number(each.method.config[option]) for own in lines for each in own):
        lines += [own for own in alike.values() if own not in lines]
    else:
        lines += [own for own in alike.values() if _value(own[0], option) not in shown and shown]
    return [sorted(own, key=lambda one: _order(one.method.config[option])) for own in lines]


def _plot_option(
    frame: Frame, name: str, memory: str, option: str, lines: Sequence[Sequence[Series]]
) -> Plot:
    every = [series for own in lines for series in own]
    numeric = all(_is_number(series.method.config[option]) for series in every)
    at = {
        series.label: float(series.method.config[option]) if numeric else float(place)
        for place, series in enumerate(every)
    }
    with _Drawing.open(name, f"{option} of {memory}", f"{frame.headline.shown}, %") as drawing:
        for place, own in enumerate(lines):
            scored = [(one, frame.figure(one.label, frame.headline)) for one in own]
            known = [(at[one.label], score) for one, score in scored if score is not None]
            if known:
                label = f"{own[0].label} …" if len(lines) > 1 and len(own) > 1 else ""
                line = "-" if numeric and len(own) > 1 else "none"
                drawing.bars(place, label, *map(list, zip(*known, strict=True)), line=line)
        for place, series in enumerate(
            one for one in frame.group.series if one.method.memory != memory
        ):
            score = frame.figure(series.label, frame.headline)
            if score is not None:
                style = ("--", ":", "-.")[place % 3]
                height = 100 * score.interval.mean
                drawing.axes.axhline(height, color=_GREY, linestyle=style, label=series.label)
        ticks = sorted(set(at.values()))
        if not numeric:
            drawing.axes.set_xticks(list(at.values()), list(at), rotation=30, ha="right")
        elif len(ticks) <= 9:
            drawing.axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
    return drawing.plot(f"{frame.headline.shown} by {option} of {memory}", "With 95% intervals.")


def _value(series: Series, option: str) -> str:
    return json.dumps(series.method.config[option])


def _order(value: Any) -> tuple[bool, float, str]:
    is_number = _is_number(value)
    return not is_number, float(value) if is_number else 0.0, str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _Drawing:
    """A matplotlib figure whose ``axes`` are drawn on while it is open, and then an SVG."""

    def __init__(self, name: str, axes: Any) -> None:
        self.name, self.axes = re.sub(r"[^A-Za-z0-9_.-]+", "-", name), axes
        self._svg = ""
        self._has_bars = False

    @classmethod
    @contextmanager
    def open(cls, name: str, across: str, up: str, height: float = 3.9) -> Iterator[_Drawing]:
        try:
            import matplotlib
            from matplotlib.figure import Figure as Canvas
        except ImportError as error:
            raise UsageError("plots need matplotlib", hint=install_hint("evaluation")) from error
        with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
            canvas = Canvas(figsize=(6.4, height), layout="constrained")
            drawing = cls(name, canvas.add_subplot())
            drawing.axes.set_xlabel(across)
            drawing.axes.set_ylabel(up)
            yield drawing
            if drawing._has_bars:
                drawing.axes.set_ylim(bottom=0)
            if drawing.axes.get_legend_handles_labels()[1]:
                drawing.axes.legend(loc="best", fontsize=9)
            out = StringIO()
            canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
            drawing._svg = out.getvalue()

    def bars(
        self,
        place: int,
        label: str,
        at: Sequence[float],
        scores: Sequence[Figure],
        *,
        line: str = "none",
    ) -> None:
        """Draw points with their intervals."""
        own = [score.interval for score in scores]
        low = [100 * (one.mean - one.low) for one in own]
        high = [100 * (one.high - one.mean) for one in own]
        self.axes.errorbar(
            at,
            [100 * one.mean for one in own],
            yerr=[low, high],
            color=COLOURS[place % len(COLOURS)],
            marker=MARKS[place % len(MARKS)],
            linestyle=line,
            elinewidth=1.1,
            capsize=3,
            label=label or None,
        )
        self._has_bars = True

    def plot(self, title: str, about: str) -> Plot:
        """The drawing, with ids that no other plot of a page has."""
        svg = re.sub(r"<metadata>.*?</metadata>\s*", "", self._svg, flags=re.DOTALL)
        svg = re.sub(r'\bid="', f'id="{self.name}-', svg)
        svg = re.sub(r'(url\(#|href="#)', rf"\g<1>{self.name}-", svg)
        return Plot(self.name, title, about, svg)
