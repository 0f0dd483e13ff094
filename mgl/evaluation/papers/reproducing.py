"""A paper's table made again: the arguments of its runs, and their results beside its numbers.

>>> suite, made = entry("gam/table3")                                      # doctest: +SKIP
>>> run_arguments(made.runs[0], data, ("qwen2.5-7b-instruct",))            # doctest: +SKIP
>>> besides(made, run, papers["gam"], group)                               # doctest: +SKIP
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from mgl.evaluation.papers.references import Averaging, Cell, Paper, Table
from mgl.evaluation.papers.suites import Method, Run
from mgl.evaluation.report.figures import Figure, averaged, measured, metrics
from mgl.evaluation.report.runs import Group
from mgl.evaluation.runs.manifest import Arguments

__all__ = ["Beside", "besides", "limit_of", "run_arguments"]


@dataclass(frozen=True)
class Beside:
    """One score of one method: ``ours`` is averaged by the ``averaging`` of the paper's table, None
    where the method has no such score; ``paper`` are its numbers for that row, of several models
    where it has them."""

    method: str
    metric: str
    ours: Figure | None
    averaging: Averaging
    paper: tuple[Cell, ...]


def run_arguments(
    run: Run,
    data: Path | None,
    models: tuple[str, ...],
    *,
    limit: int | None = None,
    seed: int = 0,
    judge: str | None = None,
) -> Arguments:
    """What the runner is asked for. ``data`` is None for a benchmark that is made for the run;
    ``limit`` is held to the run's own; ``judge`` is the profile of the model that judges by all of
    the run's judges, where the table is judged."""
    judges = () if judge is None else tuple(f"{name}={judge}" for name in run.judges)
    own = [(run.benchmark, run.parameters)] if data is None else []
    set_ = [*own, *((method.label, method.settings) for method in run.methods)]
    return Arguments(
        benchmark=run.benchmark,
        data=data,
        memories=run.memories,
        models=models,
        settings=tuple(
            f"{whose}.{name}={json.dumps(value)}"
            for whose, settings in set_
            for name, value in settings.items()
        ),
        limit=limit_of(run, limit),
        seed=seed,
        labels=run.labels,
        judge=judges[0] if judges else None,
        other_judges=judges[1:],
    )


def limit_of(run: Run, limit: int | None) -> int | None:
    """The smaller of the run's own limit and one that is given; None where there is neither."""
    return min((one for one in (limit, run.limit) if one is not None), default=None)


def besides(table: Table, run: Run, paper: Paper, group: Group) -> list[Beside]:
    """Every score of every method with what the table prints for it: methods in the run's order.

    Ours are averaged as that row is, and where the table has none for a method, as its other rows.
    """
    by_label = {method.label: method for method in run.methods}
    found = []
    for series in group.series:
        method = by_label[series.method.label.partition("@")[0]]
        for metric in metrics(group) if series.records else ():
            printed = _cells(table, run, paper, metric.printed)
            cells = tuple(cell for cell in printed if _of_method(cell, method))
            rule = next(iter((*cells, *printed)), None)
            over = rule.categories if rule else None
            own = measured(metric, series.records)
            value = averaged(metric, series.records, over) if own else None
            averaging = rule.averaging if rule else "questions"
            found.append(Beside(series.label, metric.name, value, averaging, cells))
    return found


def _cells(table: Table, run: Run, paper: Paper, name: str) -> list[Cell]:
    """What the table prints of all of the run's items."""
    return [
        cell
        for cell in paper.cells(table.id)
        if (cell.benchmark, cell.scorer) == (run.benchmark, name)
        and cell.part in ({}, run.labels, {**run.labels, **_made(run)})
    ]


def _of_method(cell: Cell, method: Method) -> bool:
    alike = not method.setting or dict(cell.setting) == dict(method.setting)
    return cell.method == method.row and alike


def _made(run: Run) -> dict[str, str]:
    """The labels that all items of a benchmark made with these parameters have."""
    return {name: str(value) for name, value in run.parameters.items()}
