"""The folders of runs as a report reads them, and which of them fit into one table.

    >>> group_runs([read_run(Path("runs/locomo"))])        # doctest: +SKIP

Runs share a table if they put the same items of the same files to their methods and score them the
same way; the others are shown apart, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from mgl.errors import InputError
from mgl.evaluation.records import BuildRecord, JsonLines, PairRecord, Record
from mgl.evaluation.runs.folder import KEPT, RunFolder
from mgl.evaluation.runs.manifest import Manifest, Method

__all__ = ["Group", "Series", "StoredRun", "group_runs", "read_run"]


@dataclass(frozen=True)
class StoredRun:
    """A run's folder, by its ``name``, with the records of its own methods and items only;
    ``notes`` are what a reader of its figures has to know."""

    name: str
    manifest: Manifest
    records: Mapping[tuple[str, str], Record]
    builds: Sequence[BuildRecord]
    seconds: Sequence[Mapping[str, Any]]
    labelled: Sequence[Record] = ()
    pairs: Sequence[PairRecord] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Series:
    """One method of one run: ``label`` is unique in its group; ``records`` are in item order."""

    label: str
    run: str
    method: Method
    embedder: str
    reranker: str
    questions: str
    records: Sequence[Record]
    builds: Sequence[BuildRecord]
    seconds: Sequence[Mapping[str, Any]]

    @cached_property
    def by_item(self) -> Mapping[str, Record]:
        return {record.item["id"]: record for record in self.records}


@dataclass(frozen=True)
class Group:
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
    manifest, folder = Manifest.read(path), RunFolder(path)
    labels = {method.label for method in manifest.methods}
    items = set(manifest.dataset.items)
    known = {
        key: record
        for key, record in folder.records.items()
        if key[0] in labels and key[1] in items
    }
    pairs = [
        pair
        for pair in folder.pairs.values()
        if {(pair.one, pair.item), (pair.other, pair.item)} <= known.keys()
    ]
    name = path.resolve().name
    return StoredRun(
        name,
        manifest,
        known,
        [one for one in folder.builds.values() if one.method in labels],
        JsonLines(path / "seconds.jsonl").rows,
        list(folder.labelled.values()),
        pairs,
        tuple(_note(name, manifest, len(known), len(folder.records), path)),
    )


def group_runs(runs: Sequence[StoredRun]) -> list[Group]:
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
        "judge": (manifest.judge, manifest.judge_model),
    }


def _group(own: Sequence[StoredRun], everyone: Sequence[Sequence[StoredRun]]) -> Group:
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
        _series(run, method, labels.count(method.label) == 1)
        for run in own
        for method in run.manifest.methods
    ]
    return Group(traits["benchmark"], own, series, "; ".join(reasons))


def _series(run: StoredRun, method: Method, unique: bool) -> Series:
    keys = [(method.label, item) for item in run.manifest.dataset.items]
    return Series(
        label=method.label if unique else f"{method.label} ({run.name})",
        run=run.name,
        method=method,
        embedder=run.manifest.models[method.model].embedder,
        reranker=run.manifest.models[method.model].reranker,
        questions=run.manifest.arguments.questions,
        records=[run.records[key] for key in keys if key in run.records],
        builds=[one for one in run.builds if one.method == method.label],
        seconds=[row for row in run.seconds if row.get("method") == method.label],
    )


def _note(name: str, manifest: Manifest, known: int, found: int, path: Path) -> list[str]:
    notes = [f"{name}: {note}" for note in manifest.dataset.notes]
    of = len(manifest.methods) * len(manifest.dataset.items)
    if known < of or manifest.ended is None:
        notes.append(
            f"{name} is not finished: it has {known} of {of} answers, and its figures are of these "
            f"alone (mgl eval resume {path})"
        )
    if found > known:
        notes.append(f"{name}: {found - known} records of no method or item of the run are ignored")
    for file, kind in KEPT.items():
        names = {field for row in JsonLines(path / file).rows for field in row}
        if unknown := sorted(names - {each.name for each in fields(kind)}):
            notes.append(f"{name}: fields of {file} are unknown and ignored: {', '.join(unknown)}")
    return notes
