"""A paper's table made again: the arguments of its runs, and their results beside its numbers.

>>> suite, entry = find_entry("gam/table3")                                    # doctest: +SKIP
>>> build_arguments(entry.runs[0], data, ("qwen2.5-7b-instruct",))             # doctest: +SKIP
>>> compare_run(table, entry.runs[0], paper, group)                            # doctest: +SKIP
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mgl.evaluation.papers.references import Averaging, Cell, Paper, Table
from mgl.evaluation.papers.suites import Run
from mgl.evaluation.report.figures import Figure, average, is_measured, list_metrics
from mgl.evaluation.report.runs import Group
from mgl.evaluation.runs.manifest import Arguments

__all__ = ["Beside", "build_arguments", "compare_run", "smaller_limit"]


@dataclass(frozen=True)
class Beside:
    """One score of one method: ``ours`` is averaged as the paper's table is, None if the method
    lacks the score; ``paper`` are its numbers for that row, of several models if it has them."""

    method: str
    metric: str
    ours: Figure | None
    averaging: Averaging
    paper: tuple[Cell, ...]


def build_arguments(
    run: Run,
    data: Path | None,
    models: tuple[str, ...],
    *,
    limit: int | None = None,
    seed: int = 0,
    judge: str | None = None,
) -> Arguments:
    """Build the runner's arguments. ``data`` is None for a generated benchmark; ``judge`` is the
    profile of the model that judges, if the table is judged."""
    judges = () if judge is None else tuple(f"{name}={judge}" for name in run.judges)
    own = [(run.benchmark, run.parameters)] if data is None else []
    all_settings = [*own, *((method.label, method.settings) for method in run.methods)]
    return Arguments(
        benchmark=run.benchmark,
        data=data,
        memories=run.memories,
        models=models,
        settings=tuple(
            f"{whose}.{name}={json.dumps(value)}"
            for whose, settings in all_settings
            for name, value in settings.items()
        ),
        limit=smaller_limit(run, limit),
        seed=seed,
        labels=run.labels,
        judge=next(iter(judges), None),
        other_judges=judges[1:],
    )


def smaller_limit(run: Run, limit: int | None) -> int | None:
    """Return the smaller of the run's own limit and a given one, if there is any."""
    return min((one for one in (limit, run.limit) if one is not None), default=None)


def compare_run(table: Table, run: Run, paper: Paper, group: Group) -> list[Beside]:
    """Put every score of every method beside what the table prints for it, methods in run order.

    Ours are averaged as that row is, or as the table's other rows if it has none for a method.
    """
    made = {name: str(value) for name, value in run.parameters.items()}
    by_label = {method.label: method for method in run.methods}
    found = []
    for series in group.series:
        method = by_label[series.method.label.partition("@")[0]]
        for metric in list_metrics(group) if series.records else ():
            printed = [
                cell
                for cell in paper.cells(table.id)
                if (cell.benchmark, cell.scorer) == (run.benchmark, metric.printed)
                and cell.part in ({}, run.labels, {**run.labels, **made})
            ]
            cells = tuple(
                cell
                for cell in printed
                if cell.method == method.row
                and (not method.setting or dict(cell.setting) == dict(method.setting))
            )
            rule = next(iter((*cells, *printed)), None)
            value = None
            if is_measured(metric, series.records):
                value = average(metric, series.records, rule.categories if rule else None)
            averaging = rule.averaging if rule else "questions"
            found.append(Beside(series.label, metric.name, value, averaging, cells))
    return found
