"""Plots of runs, each where the runs vary what it shows.

| plot | after |
|---|---|
| the first score against the compaction ratio | MindGraph Fig. 3 |
| nodes of a memory against tokens of its source | MindGraph Fig. 4 |
| lookups of an answer against nodes of its graph | MindGraph §5.4 |
| the first score by an option | HGMem Fig. 3, Mnemis Fig. 3, GAM Fig. 3 to 6 (``PRINTED``) |

By an option are shown methods of one memory and model that differ in it and in nothing else.

Needs matplotlib (extra ``evaluation``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from mgl.evaluation.report.costs import with_measures
from mgl.evaluation.report.drawing import Drawing
from mgl.evaluation.report.figures import Figure, Metric, figure, measured
from mgl.evaluation.report.runs import Group, Series
from mgl.evaluation.report.tables import Plot
from mgl.evaluation.report.tools import tool_uses

__all__ = ["plots"]

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


def plots(group: Group, metrics: Sequence[Metric], name: str) -> list[Plot]:
    """The plots that a group has something for, their names beginning with ``name``; UsageError
    where matplotlib is missing."""
    worth = [metric for metric in metrics if not metric.measure]
    found = [_sizes(group, name), _lookups(group, name)]
    if worth:
        found = [_compaction(group, worth[0], name), *found, *_sweeps(group, worth[0], name)]
    return [plot for plot in found if plot is not None]


def _compaction(group: Group, metric: Metric, name: str) -> Plot | None:
    points: list[tuple[str, Figure, Figure]] = []
    for series in group.series:
        ratio = figure(COMPACTION, with_measures(series))
        score = _score(series, metric)
        if ratio is not None and score is not None and ratio.mean > 0:
            points.append((series.label, ratio, score))
    if len(points) < 2:
        return None
    drawing = Drawing(
        f"{name}-compaction",
        "compaction ratio, % (mean of an answer)",
        f"{metric.shown}, %",
    )
    for place, (label, ratio, score) in enumerate(points):
        drawing.point(place, label, _scaled(ratio), _scaled(score))
    return drawing.plot(
        "Score against compaction",
        f"After MindGraph Fig. 3. Up and to the left is better. Bars are 95% intervals, n = "
        f"{max(score.n for _, _, score in points)}.",
    )


def _sizes(group: Group, name: str) -> Plot | None:
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
    return _cloud(f"{name}-sizes", axes, about, points)


def _lookups(group: Group, name: str) -> Plot | None:
    uses = {series.label: tool_uses(series) for series in group.series}
    points = {
        label: [(float(one.nodes), float(one.lookups)) for one in own]
        for label, own in uses.items()
        if any(one.lookups for one in own)
    }
    axes = ("nodes of the graph", "lookups of an answer")
    about = ("Lookups against graph size", "After MindGraph §5.4. {} answers.")
    return _cloud(f"{name}-lookups", axes, about, points)


def _cloud(
    name: str,
    axes: tuple[str, str],
    about: tuple[str, str],
    points: Mapping[str, Sequence[tuple[float, float]]],
) -> Plot | None:
    """The points of those methods that have them at more than one place across; ``about`` is the
    title and what is told of so many points."""
    drawn = {label: own for label, own in points.items() if len({at for at, _ in own}) > 1}
    if not drawn:
        return None
    drawing = Drawing(name, *axes)
    for place, (label, own) in enumerate(drawn.items()):
        drawing.cloud(place, label, own)
    title, told = about
    return drawing.plot(title, told.format(sum(map(len, drawn.values()))))


def _sweeps(group: Group, metric: Metric, name: str) -> Iterator[Plot]:
    """A plot for each memory and option; a line for each way that all else is set."""
    for memory in dict.fromkeys(series.method.memory for series in group.series):
        own = [series for series in group.series if series.method.memory == memory]
        for option in dict.fromkeys(each for series in own for each in series.method.config):
            lines = _lines(own, option)
            if lines:
                yield _sweep(f"{name}-{memory}-{option}", metric, memory, option, lines)


def _lines(series: Sequence[Series], option: str) -> dict[str, list[Series]]:
    """Those that differ in this option alone, by what they have in common, in its order; runs from
    before there was such an option are not among them."""
    alike: dict[str, list[Series]] = {}
    for each in series:
        if option not in each.method.config:
            continue
        rest = {name: value for name, value in each.method.config.items() if name != option}
        common = json.dumps(
            [each.method.model, each.questions, each.embedder, each.reranker, rest], sort_keys=True
        )
        alike.setdefault(common, []).append(each)
    found: dict[str, list[Series]] = {}
    for own in alike.values():
        if len({json.dumps(each.method.config[option]) for each in own}) > 1:
            numeric = all(_numeric(each.method.config[option]) for each in own)
            ordered = sorted(own, key=lambda one: one.method.config[option]) if numeric else own
            found[f"{ordered[0].method.model}, {ordered[0].label} …"] = ordered
    return found


def _sweep(
    name: str, metric: Metric, memory: str, option: str, lines: Mapping[str, Sequence[Series]]
) -> Plot:
    every = [series.method.config[option] for own in lines.values() for series in own]
    names = None if all(map(_numeric, every)) else list(dict.fromkeys(map(str, every)))
    drawing = Drawing(
        name,
        f"{option} of {memory}",
        f"{metric.shown}, %",
        names=names,
    )
    sizes = set()
    for place, (label, own) in enumerate(lines.items()):
        points = []
        for series in own:
            score, at = _score(series, metric), series.method.config[option]
            if score is not None:
                points.append((names.index(str(at)) if names else float(at), _scaled(score)))
                sizes.add(score.n)
        drawing.line(place, label if len(lines) > 1 else "", points, joined=names is None)
    after = PRINTED.get((memory, option))
    told = f"n = {max(sizes, default=0)} a point, with 95% intervals."
    return drawing.plot(
        f"{metric.shown} by {option} of {memory}", f"After {after}. {told}" if after else told
    )


def _score(series: Series, metric: Metric) -> Figure | None:
    return figure(metric, series.records) if measured(metric, series.records) else None


def _scaled(score: Figure) -> tuple[float, float, float]:
    """Low, mean and high in percent; the mean in their place where there is no interval."""
    low = score.mean if score.low is None else score.low
    high = score.mean if score.high is None else score.high
    return 100 * low, 100 * score.mean, 100 * high


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
