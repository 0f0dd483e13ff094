"""Plots of runs as SVG, each if the runs have what it shows (matplotlib, extra ``evaluation``).

| plot | after |
|---|---|
| differences between methods, as a forest | |
| the headline against the tokens of a question | |
| the headline against the compaction ratio | MindGraph Fig. 3 |
| nodes of a memory against tokens of its source | MindGraph Fig. 4 |
| the headline by an option | HGMem Fig. 3, Mnemis Fig. 3, GAM Fig. 3 to 6 |

By an option are shown methods of one memory and model that differ in it, with a curve for each way
that all else is set; other memories are lines across. The same data give the same SVG, on a
transparent ground; a dark page inverts it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, Final

import numpy as np

from mgl.errors import UsageError, install_hint
from mgl.evaluation.report.frame import Figure, Frame
from mgl.evaluation.report.runs import Series
from mgl.evaluation.report.tables import Comparison
from mgl.evaluation.statistics import Interval

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
_MARGIN: Final = 2.5  # so that the axis has two of 1, 2 and 5 at least
_FLOOR: Final = -2  # of 100, so that a mark at 0 is whole
_GREY: Final = "#56616d"


@dataclass(frozen=True, slots=True)
class Plot:
    """An SVG drawing whose ids begin with its ``name``, which no other plot of a page has."""

    name: str
    title: str
    about: str
    svg: str


def draw_plots(frame: Frame, comparisons: Sequence[Comparison], name: str) -> Iterator[Plot]:
    """Draw what a group has something for, with names that begin with ``name``; UsageError without
    matplotlib."""
    yield from _draw_forest(frame, comparisons[:_MOST_PAIRS], f"{name}-differences")
    yield from _draw_against(frame, "question_tokens", f"{name}-cost")
    yield from _draw_against(frame, "compaction_ratio", f"{name}-compaction")
    yield from _draw_sizes(frame, f"{name}-sizes")
    yield from _draw_options(frame, name)


def _draw_forest(frame: Frame, shown: Sequence[Comparison], name: str) -> Iterator[Plot]:
    def paint(axes: Any) -> None:
        for place, each in enumerate(reversed(shown)):
            style = {"color": COLOURS[0]} if each.differs else {"color": _GREY, "mfc": "none"}
            mean, reach = _reach([each.found.difference])
            axes.errorbar(mean, [place], xerr=reach, marker="o", capsize=3, **style)
        axes.axvline(0, color=_GREY, linewidth=1)
        reach = max(5, *map(abs, axes.get_xlim()))
        labels = [f"{each.one} − {each.other}" for each in reversed(shown)]
        axes.set(
            yticks=range(len(shown)),
            yticklabels=labels,
            ylim=(-0.6, len(shown) - 0.4),
            xlim=(-reach, reach),
        )

    if shown:
        across = f"difference in {frame.headline.shown}, points"
        about = "95% intervals; filled if the difference is significant after correction."
        svg = _draw(name, paint, across, "", height=1.0 + 0.34 * len(shown))
        yield Plot(name, "Differences between methods", about, svg)


def _draw_against(frame: Frame, cost: str, name: str) -> Iterator[Plot]:
    """The headline of each method against one of its costs."""
    metric = frame.metrics[cost]
    times = 100 if metric.unit == "%" else 1
    points = [
        (series.label, times * spent.interval.mean, score)
        for series in frame.group.series
        if (spent := frame.figure(series.label, metric)) is not None
        and (score := frame.figure(series.label, frame.headline)) is not None
        and spent.interval.mean > 0
    ]

    def paint(axes: Any) -> None:
        for place, (label, at, score) in enumerate(points):
            _draw_bars(axes, place, label, [(at, score)])
        ends = [at for _, at, _ in points]
        axes.set_xlim(min(ends) / _MARGIN, max(ends) * _MARGIN)
        axes.set_xscale("log", subs=())
        axes.xaxis.get_major_locator().set_params(subs=(1, 2, 5))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.set_ylim(bottom=_FLOOR)

    if len(points) > 1:
        after = "After MindGraph Fig. 3. " if cost == "compaction_ratio" else ""
        about = f"{after}Up and to the left is better. Bars are 95% intervals."
        across = f"{metric.about}{', %' if metric.unit == '%' else ''}"
        svg = _draw(name, paint, across, f"{frame.headline.shown}, %")
        yield Plot(name, f"Score against {metric.shown}", about, svg)


def _draw_sizes(frame: Frame, name: str) -> Iterator[Plot]:
    """The size of each memory against the length of its source, where lengths differ."""
    points = {}
    for series in frame.group.series:
        facts = [one.memory for one in (series.builds or series.records)]
        own = [(each.get("tokens"), each.get("nodes")) for each in facts]
        own = [(tokens, nodes) for tokens, nodes in own if tokens and nodes]
        if len({tokens for tokens, _ in own}) > 1:
            points[series.label] = own

    def paint(axes: Any) -> None:
        for place, (label, own) in enumerate(points.items()):
            style = {"color": COLOURS[place % len(COLOURS)], "marker": MARKS[place % len(MARKS)]}
            axes.scatter(*zip(*own, strict=True), label=label, alpha=0.8, s=24, **style)
        axes.set_ylim(bottom=0)

    if points:
        svg = _draw(name, paint, "tokens of the source", "nodes of the memory")
        yield Plot(name, "Graph size against length", "After MindGraph Fig. 4.", svg)


def _draw_options(frame: Frame, name: str) -> Iterator[Plot]:
    """A plot for each memory and option that its methods differ in."""
    every = frame.group.series
    for memory in dict.fromkeys(series.method.memory for series in every):
        own = [series for series in every if series.method.memory == memory]
        for option in dict.fromkeys(each for series in own for each in series.method.config):
            lines = _find_lines([one for one in own if option in one.method.config], option)
            if lines:
                yield _draw_option(frame, f"{name}-{memory}-{option}", memory, option, lines)


def _find_lines(series: Sequence[Series], option: str) -> list[list[Series]]:
    """Group methods that differ in this option alone, in its order. What stands alone is shown
    beside curves of names, and left out beside curves of numbers, where another option varies."""
    alike: dict[str, list[Series]] = {}
    for each in series:
        rest = {name: value for name, value in each.method.config.items() if name != option}
        common = [each.method.model, *each.retrieval, each.run.manifest.arguments.questions, rest]
        alike.setdefault(json.dumps(common, sort_keys=True), []).append(each)
    lines = [own for own in alike.values() if len({_value(each, option) for each in own}) > 1]
    if lines and not _is_numeric(lines, option):
        return list(alike.values())
    return [sorted(own, key=lambda one: one.method.config[option]) for own in lines]


def _draw_option(
    frame: Frame, name: str, memory: str, option: str, lines: Sequence[Sequence[Series]]
) -> Plot:
    every = [series for own in lines for series in own]
    is_numeric = _is_numeric(lines, option)
    at: Mapping[str, float] = {
        series.label: series.method.config[option] if is_numeric else place
        for place, series in enumerate(every)
    }
    scored = {one.label: frame.figure(one.label, frame.headline) for one in frame.group.series}
    found = {label: score for label, score in scored.items() if score is not None}

    def paint(axes: Any) -> None:
        for place, own in enumerate(lines):
            points = [(at[one.label], found[one.label]) for one in own if one.label in found]
            label = f"{own[0].label} …" if len(lines) > 1 and len(own) > 1 else ""
            line = "-" if is_numeric else "none"
            _draw_bars(axes, place, label, points, linestyle=line)
        others = [one.label for one in frame.group.series if one.method.memory != memory]
        for place, label in enumerate(label for label in others if label in found):
            style = {"color": _GREY, "linestyle": ("--", ":", "-.")[place % 3]}
            axes.axhline(100 * found[label].interval.mean, label=label, **style)
        if not is_numeric:
            axes.set_xticks(list(at.values()), list(at), rotation=30, ha="right")
        elif len(ticks := sorted(set(at.values()))) <= 9:
            axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
        axes.set_ylim(bottom=_FLOOR)

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)
    shown = frame.headline.shown
    svg = _draw(name, paint, f"{option} of {memory}", f"{shown}, %")
    return Plot(name, f"{shown} by {option} of {memory}", "With 95% intervals.", svg)


def _value(series: Series, option: str) -> str:
    return json.dumps(series.method.config[option])


def _is_numeric(lines: Sequence[Sequence[Series]], option: str) -> bool:
    values = [series.method.config[option] for own in lines for series in own]
    return all(isinstance(each, int | float) and not isinstance(each, bool) for each in values)


def _draw_bars(
    axes: Any, place: int, label: str, points: Sequence[tuple[float, Figure]], **style: Any
) -> None:
    """Draw figures at their places across, with their intervals."""
    means, reach = _reach([score.interval for _, score in points])
    axes.errorbar(
        [at for at, _ in points],
        means,
        yerr=reach,
        color=COLOURS[place % len(COLOURS)],
        marker=MARKS[place % len(MARKS)],
        elinewidth=1.1,
        capsize=3,
        label=label or None,
        **{"linestyle": "none", **style},
    )


def _reach(intervals: Sequence[Interval]) -> tuple[Any, Any]:
    """The means of 100, and how far their intervals reach below and above."""
    low, mean, high = 100 * np.array([(one.low, one.mean, one.high) for one in intervals]).T
    return mean, (mean - low, high - mean)


def _draw(
    name: str, paint: Callable[[Any], None], across: str, up: str, *, height: float = 3.4
) -> str:
    """Draw axes as an SVG, with ids that no other plot of a page has."""
    try:
        import matplotlib
        from matplotlib.figure import Figure as Canvas
    except ImportError as error:
        raise UsageError("plots need matplotlib", hint=install_hint("evaluation")) from error
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}):
        canvas = Canvas(figsize=(5.2, height), layout="constrained")
        axes = canvas.add_subplot()
        axes.set(xlabel=across, ylabel=up)
        paint(axes)
        if axes.get_legend_handles_labels()[1]:
            canvas.legend(loc="outside upper left", ncols=4, fontsize=9)
        out = StringIO()
        canvas.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", out.getvalue(), flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", svg)
