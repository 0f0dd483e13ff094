"""The folders of runs as a report reads them, and which of them fit into one table.

Runs share a table if they put the same items of the same files to their methods and score them the
same way; the others are shown apart, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mgl.errors import InputError
from mgl.evaluation.records import BuildRecord, Record, RunLog
from mgl.evaluation.runs.due import list_keys
from mgl.evaluation.runs.folder import open_run
from mgl.evaluation.runs.manifest import Manifest, Method


@dataclass(frozen=True)
class StoredRun:
    """A run's folder, by its ``name``, with the records of its own methods and items only;
    ``log`` has all. ``notes`` are what a reader of its figures has to know."""

    name: str
    manifest: Manifest
    records: Sequence[Record]
    builds: Sequence[BuildRecord]
    labelled: Sequence[Record]
    log: RunLog
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """One method of one run: ``label`` is unique in its group; ``records`` are in item order."""

    label: str
    run: StoredRun
    method: Method
    records: Sequence[Record]
    builds: Sequence[BuildRecord]

    @property
    def retrieval(self) -> tuple[str, str]:
        """Its embedder and reranker."""
        facts = self.run.manifest.models[self.method.model]
        return facts.embedder, facts.reranker


@dataclass(frozen=True)
class RunGroup:
    """Runs whose methods answered the same items; ``apart`` says why others of the same benchmark
    are not among them, and is empty if there are none."""

    benchmark: str
    runs: Sequence[StoredRun]
    series: Sequence[Series]
    apart: str = ""

    @property
    def manifest(self) -> Manifest:
        """That of the first run; the others are alike in what makes a group."""
        return self.runs[0].manifest


def read_run(path: Path) -> StoredRun:
    """Read a run's folder; InputError if it is not a run, or a file of it is another's."""
    manifest, log = open_run(path)
    keys = list_keys(manifest)
    known = [log.answers[key] for key in keys if key in log.answers]
    name, labels = path.resolve().name, {method.label for method in manifest.methods}
    notes = [f"{name}: {note}" for note in manifest.dataset.notes]
    if len(known) < len(keys) or manifest.ended is None:
        notes.append(
            f"{name} is not finished: it has {len(known)} of {len(keys)} answers, and its figures "
            f"are of these alone (mgl eval resume {path})"
        )
    if ignored := len(log.answers) - len(known):
        notes.append(f"{name}: {ignored} records of no method or item of the run are ignored")
    notes += [f"{name}: {model} judged answers of its own" for model in manifest.self_judged]
    return StoredRun(
        name,
        manifest,
        known,
        [one for one in log.builds.values() if one.method in labels],
        list(log.labelled.values()),
        log,
        tuple(notes),
    )


def group_runs(runs: Sequence[StoredRun]) -> list[RunGroup]:
    """Group the runs that can be compared, in the order given.

    InputError if two of them have the same name.
    """
    names = [run.name for run in runs]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f"two runs are called {', '.join(twice)}", hint="rename one folder, or name it once"
        )
    alike: dict[tuple[Any, ...], list[StoredRun]] = {}
    for run in runs:
        alike.setdefault(tuple(_traits(run.manifest).values()), []).append(run)
    return [_group(own, list(alike.values())) for own in alike.values()]


def _traits(manifest: Manifest) -> dict[str, Any]:
    """What has to be the same in one table, by its name for readers."""
    return {
        "benchmark": manifest.arguments.benchmark,
        "files": tuple(sorted(manifest.dataset.sha256.items())),
        "parameters": json.dumps(manifest.dataset.made_with, sort_keys=True),
        "items": frozenset(manifest.dataset.items),
        "scorers": manifest.scorers,
        "judge": tuple((one.judge, one.model) for one in manifest.judged_by[:1]),
    }


def _group(own: Sequence[StoredRun], everyone: Sequence[Sequence[StoredRun]]) -> RunGroup:
    traits = _traits(own[0].manifest)
    reasons = []
    for other in everyone:
        others = _traits(other[0].manifest)
        if other[0] is not own[0] and others["benchmark"] == traits["benchmark"]:
            differ = " and ".join(name for name in traits if traits[name] != others[name])
            names = ", ".join(run.name for run in other)
            reasons.append(f"apart from {names}: other {differ}")
    labels = [method.label for run in own for method in run.manifest.methods]
    series = [
        Series(
            method.label if labels.count(method.label) == 1 else f"{method.label} ({run.name})",
            run,
            method,
            [record for record in run.records if record.method == method.label],
            [one for one in run.builds if one.method == method.label],
        )
        for run in own
        for method in run.manifest.methods
    ]
    return RunGroup(traits["benchmark"], own, series, "; ".join(reasons))
