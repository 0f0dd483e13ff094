"""Our numbers beside the printed ones: a method of ours beside the same row of a paper's table.

>>> put_beside(Frame.of(group), load_references()["gam"].cells("table3"), rows.matches)
...                                                                            # doctest: +SKIP

A printed number stands beside a method if it is of the same benchmark, metric and row: an ablation
of ours beside the paper's, not beside its whole system. If the model, the judge or the items
differ, the number says so. Costs are numbers like any other; those of some stages are totals of a
run's builds and answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mgl.evaluation.papers.references import Cell
from mgl.evaluation.records import BuildRecord, Record
from mgl.evaluation.report.frame import Figure, Frame, Metric, Unit
from mgl.evaluation.report.runs import Series
from mgl.evaluation.runs.manifest import Method
from mgl.evaluation.statistics import Interval

__all__ = ["Beside", "put_beside"]

_STAGED: Final[Mapping[str, Unit]] = {
    "stage_input_tokens": "tokens",
    "stage_output_tokens": "tokens",
    "stage_seconds": "seconds",
    "sessions": "calls",
}
"""What is counted of the calls of some stages; ``_per_session`` divides it by the sessions read."""


@dataclass(frozen=True)
class Beside:
    """One figure of one method: ``ours``, averaged as the paper's is ``over`` the values of a
    label, None if the method lacks it; ``printed`` are the paper's numbers for that row, of several
    models if it has them, our own model's first."""

    label: str
    metric: Metric
    part: str
    over: str
    ours: Figure | None
    printed: tuple[Cell, ...]


def put_beside(
    frame: Frame, cells: Iterable[Cell], matches: Callable[[Method, Cell], bool]
) -> list[Beside]:
    """Put every method of a group beside the printed numbers that are of its rows."""
    group = frame.group
    made = {name: str(value) for name, value in (group.manifest.dataset.made_with or {}).items()}
    official_last = sorted(
        frame.metrics.values(), key=lambda metric: metric.judge == metric.printed
    )
    by_name = {metric.printed: metric for metric in official_last}
    alike: dict[tuple[str, Metric, tuple[tuple[str, str], ...], str], list[Cell]] = {}
    for cell in cells:
        metric = by_name.get(cell.scorer or "") or _find_staged(cell)
        if cell.benchmark != group.benchmark or metric is None:
            continue
        for series in group.series:
            if matches(series.method, cell):
                part = {name: v for name, v in cell.part.items() if made.get(name) != v}
                part |= {name: v for name, v in cell.setting.items() if name == "nodes"}
                over = cell.categories or "" if metric.kind == "score" else ""
                shown = cell.method * bool(cell.stages)
                key = series.label, metric, tuple(part.items()), over or shown
                alike.setdefault(key, []).append(cell)
    order = {series.label: place for place, series in enumerate(group.series)}
    found = []
    for (label, metric, items, told), own in alike.items():
        series = next(one for one in group.series if one.label == label)
        stages = own[0].stages
        over = "" if stages else told
        ours = (
            _count_stages(series, metric, stages)
            if stages
            else frame.figure(series.label, metric, dict(items), over)
        )
        if ours is None and (items or stages):
            continue
        own.sort(key=lambda cell: cell.profile != series.method.model)
        shown = ", ".join(f"{name} {value}" for name, value in items) or told[len(over) :]
        found.append(Beside(series.label, metric, shown, over, ours, tuple(own)))
    return sorted(found, key=lambda one: (order[one.label], one.metric != frame.headline))


def _find_staged(cell: Cell) -> Metric | None:
    unit = _STAGED.get((cell.scorer or "").removesuffix("_per_session"))
    return None if unit is None or not cell.stages else Metric(cell.scorer or "", "cost", "", unit)


def _count_stages(series: Series, metric: Metric, stages: tuple[str, ...]) -> Figure | None:
    records: list[BuildRecord | Record] = [*series.builds, *series.records]
    spent = [one.usage[stage] for one in records for stage in stages if stage in one.usage]
    seconds = [one.took.get("stages", {}).get(stage, 0.0) for one in records for stage in stages]
    sessions = [one.memory["sessions"] for one in series.builds if "sessions" in one.memory]
    totals = {
        "stage_input_tokens": float(sum(one.input_tokens for one in spent)),
        "stage_output_tokens": float(sum(one.output_tokens for one in spent)),
        "stage_seconds": sum(seconds),
        "sessions": sum(sessions) / max(1, len(sessions)),
    }
    name = metric.name.removesuffix("_per_session")
    value = totals[name]
    if name != metric.name:
        value /= max(1, sum(sessions))
    return Figure(metric, Interval(value, value, value, len(series.builds))) if value else None
