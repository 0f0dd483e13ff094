"""A paper's table made again: the arguments of its runs, and their results beside its numbers.

    >>> suite, made = entry("gam/table3")                                      # doctest: +SKIP
    >>> run_arguments(made.runs[0], data, ("qwen2.5-7b-instruct",))            # doctest: +SKIP
    >>> besides(made, run, papers["gam"], manifest, records)                   # doctest: +SKIP

Where the paper's average is a plain mean over categories, so is ours that stands beside it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from mgl.evaluation.papers.references import Averaging, Cell, Paper, Table
from mgl.evaluation.papers.suites import Method, Run
from mgl.evaluation.runs.manifest import Arguments, Manifest
from mgl.evaluation.runs.records import Record
from mgl.evaluation.runs.summary import value_of

__all__ = ["Beside", "besides", "limit_of", "run_arguments"]


@dataclass(frozen=True)
class Beside:
    """One score of one method: ``value`` is the mean over all ``items``, of which failed and
    unscored ones count 0, by the ``averaging`` of the paper's table; ``paper`` are its numbers for
    that row, of several models where it has them."""

    method: str
    metric: str
    value: float
    items: int
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
    ``limit`` is held to the run's own; ``judge`` is the profile of the model that judges, where the
    table is judged."""
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
        judge=judge if run.judges else None,
    )


def limit_of(run: Run, limit: int | None) -> int | None:
    """The smaller of the run's own limit and one that is given; None where there is neither."""
    return min((one for one in (limit, run.limit) if one is not None), default=None)


def besides(
    table: Table, run: Run, paper: Paper, manifest: Manifest, records: Iterable[Record]
) -> list[Beside]:
    """Every score of every method with what the table prints for it: methods in the run's order."""
    of_method: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        of_method[record.method].append(record)
    names = [*manifest.scorers, *([manifest.judge] if manifest.judge else [])]
    by_label = {method.label: method for method in run.methods}
    found = []
    for method in manifest.methods:
        own = of_method[method.label]
        for name in names if own else ():
            cells = _cells(table, run, paper, by_label[method.label.partition("@")[0]], name)
            averaging = cells[0].averaging if cells else "questions"
            kinds = _kinds(own, run, paper) if averaging == "categories" else []
            value = _mean(own, name, kinds)
            found.append(Beside(method.label, name, value, len(own), averaging, tuple(cells)))
    return found


def _cells(table: Table, run: Run, paper: Paper, method: Method, name: str) -> list[Cell]:
    return [
        cell
        for cell in paper.cells(table.id)
        if (cell.benchmark, cell.scorer, cell.method) == (run.benchmark, name, method.row)
        and cell.part in ({}, run.labels, {**run.labels, **_made(run)})
        and (not method.setting or dict(cell.setting) == dict(method.setting))
    ]


def _made(run: Run) -> dict[str, str]:
    """The labels that all items of a benchmark made with these parameters have."""
    return {name: str(value) for name, value in run.parameters.items()}


def _mean(records: Sequence[Record], name: str, kinds: Sequence[str]) -> float:
    """The mean over all records, or where ``kinds`` has the kind of each, of the kinds' means."""
    own: dict[str, list[float]] = defaultdict(list)
    for record, kind in zip(records, kinds or [""] * len(records), strict=True):
        own[kind].append(value_of(record, name) or 0.0)
    return fmean(map(fmean, own.values()))


def _kinds(records: Sequence[Record], run: Run, paper: Paper) -> list[str]:
    """Of which part of the benchmark each record is, as the paper parts it."""
    labels = {
        label for cell in paper.cells() if cell.benchmark == run.benchmark for label in cell.part
    }
    if len(labels) != 1:
        return []
    (label,) = labels
    if label == "category":
        return [record.item["category"] for record in records]
    return [record.item["labels"].get(label, "") for record in records]
