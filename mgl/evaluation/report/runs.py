"""The folders of runs as a report reads them, and which of them can stand in one table.

    >>> groups([read_run(Path("runs/locomo"))])        # doctest: +SKIP

Runs stand in one table where they put the same items of the same files to their methods and score
them the same way; else each stands apart, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from mgl.errors import InputError
from mgl.evaluation.records import BuildRecord, JsonLines, PairRecord, Record
from mgl.evaluation.runs.folder import KEPT, RunFolder
from mgl.evaluation.runs.manifest import Manifest, Method

__all__ = ["Group", "Series", "StoredRun", "groups", "read_run"]


@dataclass(frozen=True)
class StoredRun:
    """A run's folder: ``name`` is the folder's, ``records`` and ``builds`` are of its methods and
    items alone, ``labelled`` are answers that people have judged, ``pairs`` those that were
    compared; ``notes`` tell what a reader of its figures has to know."""

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
    """One method of one run: ``label`` tells it from all others of its group; ``records`` are in
    the order of the items, ``due`` is how many of them are still to come."""

    label: str
    run: str
    method: Method
    embedder: str
    reranker: str
    questions: str
    records: Sequence[Record]
    due: int
    builds: Sequence[BuildRecord]
    seconds: Sequence[Mapping[str, Any]]

    @cached_property
    def by_item(self) -> Mapping[str, Record]:
        return {record.item["id"]: record for record in self.records}


@dataclass(frozen=True)
class Group:
    """Runs whose methods answered the same items; ``apart`` says why others of the same benchmark
    are not among them, and is empty where there are none."""

    benchmark: str
    runs: Sequence[StoredRun]
    series: Sequence[Series]
    apart: str = ""

    @property
    def manifest(self) -> Manifest:
        """Of the first run; in what makes a group the others are as it is."""
        return self.runs[0].manifest


def read_run(path: Path) -> StoredRun:
    """What a folder holds; InputError where it is no run, or a file of it is another's."""
    manifest, folder = Manifest.read(path), RunFolder(path)
    labels = {method.label for method in manifest.methods}
    items = set(manifest.dataset.items)
    known = {
        key: record
        for key, record in folder.records.items()
        if key[0] in labels and key[1] in items
    }
    seconds = JsonLines(path / "seconds.jsonl").rows
    name = path.resolve().name
    notes = _notes(name, manifest, len(known), len(folder.records), path)
    builds = [one for one in folder.builds.values() if one.method in labels]
    labelled = list(folder.labelled.values())
    pairs = [
        pair
        for pair in folder.pairs.values()
        if {(pair.one, pair.item), (pair.other, pair.item)} <= known.keys()
    ]
    return StoredRun(name, manifest, known, builds, seconds, labelled, pairs, tuple(notes))


def groups(runs: Sequence[StoredRun]) -> list[Group]:
    """The runs by what they can be compared in, in the order given.

    InputError where two of them are of the same name.
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
    """What has to be the same in one table, by what it is called."""
    return {
        "benchmark": manifest.arguments.benchmark,
        "files": tuple(sorted(manifest.dataset.sha256.items())),
        "parameters": json.dumps(manifest.dataset.made_with, sort_keys=True),
        "items": frozenset(manifest.dataset.items),
        "scorers": manifest.scorers,
        "judge": (manifest.judge, manifest.judge_model),
    }


def _group(own: Sequence[StoredRun], all_groups: Sequence[Sequence[StoredRun]]) -> Group:
    traits = _traits(own[0].manifest)
    reasons = []
    for other in all_groups:
        others = _traits(other[0].manifest)
        if other[0] is not own[0] and others["benchmark"] == traits["benchmark"]:
            differ = " and ".join(name for name in traits if traits[name] != others[name])
            reasons.append(f"apart from {_named(other)}: other {differ}")
    labels = [method.label for run in own for method in run.manifest.methods]
    series = [
        _series(run, method, labels.count(method.label) == 1)
        for run in own
        for method in run.manifest.methods
    ]
    return Group(traits["benchmark"], own, series, "; ".join(reasons))


def _series(run: StoredRun, method: Method, alone: bool) -> Series:
    keys = [(method.label, item) for item in run.manifest.dataset.items]
    records = [run.records[key] for key in keys if key in run.records]
    return Series(
        label=method.label if alone else f"{method.label} ({run.name})",
        run=run.name,
        method=method,
        embedder=run.manifest.models[method.model].embedder,
        reranker=run.manifest.models[method.model].reranker,
        questions=run.manifest.arguments.questions,
        records=records,
        due=len(keys) - len(records),
        builds=[one for one in run.builds if one.method == method.label],
        seconds=[row for row in run.seconds if row.get("method") == method.label],
    )


def _notes(name: str, manifest: Manifest, known: int, found: int, path: Path) -> list[str]:
    notes = [f"{name}: {note}" for note in manifest.dataset.notes]
    of = len(manifest.methods) * len(manifest.dataset.items)
    if known < of or manifest.ended is None:
        notes.append(
            f"{name} is not finished: {known} of {of} answers are there, and its figures are of "
            f"these alone (mgl eval resume {path})"
        )
    if found > known:
        notes.append(
            f"{name} holds {found - known} records of no method or item of the run; left out"
        )
    for file, kind in KEPT.items():
        unknown = sorted(
            {field for row in JsonLines(path / file).rows for field in row}
            - {each.name for each in fields(kind)}
        )
        if unknown:
            notes.append(
                f"{name}: {file} has fields that this mgl does not know ({', '.join(unknown)}); "
                "they are passed over"
            )
    return notes


def _named(runs: Iterable[StoredRun]) -> str:
    return ", ".join(run.name for run in runs)
