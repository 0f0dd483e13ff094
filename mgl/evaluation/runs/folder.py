"""The folder of a run: its manifest, its records, and the stores of memories at work.

DIR/manifest.json   what was asked for and what it was made with
DIR/records.jsonl   what came of it (mgl.evaluation.records); appended to, never rewritten
DIR/calls.sqlite    the calls that it used, if it was packed
DIR/work/           one store per memory, removed when no longer needed
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mgl.errors import InputError, UsageError
from mgl.evaluation.judges.judging import JUDGES
from mgl.evaluation.judges.panel import judge_of
from mgl.evaluation.records import Record, RunLog, item_from_json
from mgl.evaluation.runs.manifest import MANIFEST, Manifest
from mgl.evaluation.scorers.registry import AGGREGATES, RANKED, Scored, can_have
from mgl.models.files import hold_lock
from mgl.models.permissions import make_private_folder
from mgl.store import Store

RECORDS: Final = "records.jsonl"
PACKED: Final = "calls.sqlite"
_LOCK: Final = ".lock"


def open_calls(folder: Path, own: Store) -> AbstractContextManager[Store]:
    """Open the store with the calls of a run: that of a packed run, else the home's ``own``."""
    packed = folder / PACKED
    return Store.open(packed) if packed.is_file() else nullcontext(own)


class RunFolder:
    """A run's folder and its ``log``."""

    def __init__(self, path: Path) -> None:
        """InputError, with the line, if the records are another's."""
        self.path = path
        self.log = RunLog(path / RECORDS)

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Make the folder of a new run; UsageError if the path holds something already."""
        try:
            make_private_folder(path)
            held = {file.name for file in path.iterdir()}
        except OSError as error:
            raise UsageError(
                f"{path} cannot be a run's folder: {error.strerror}", hint="name another --out"
            ) from error
        if MANIFEST in held:
            raise UsageError(
                f"{path} already holds a run",
                hint=f"resume it with `mgl eval resume {path}`, or name another --out",
            )
        if any(name != _LOCK and not name.startswith(MANIFEST) for name in held):
            raise UsageError(f"{path} is not empty", hint="name another --out")
        return cls(path)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Work on the run alone; UsageError while another process does."""

        def refuse() -> None:
            raise UsageError(
                f"another mgl works on {self.path}", hint="let it finish, or stop it first"
            )

        with hold_lock(self.path / _LOCK, refuse):
            yield

    def store_path(self, kind: str, *key: object) -> Path:
        """Where the store of a build or an item lies while it is needed."""
        name = hashlib.sha256("\0".join((kind, *map(str, key))).encode()).hexdigest()[:16]
        folder = self.path / "work"
        make_private_folder(folder)
        return folder / f"{kind}-{name}.sqlite"

    def remove_stores(self) -> None:
        shutil.rmtree(self.path / "work", ignore_errors=True)


def open_run(path: Path) -> tuple[Manifest, RunLog]:
    """Read a run's manifest and records.

    InputError if there is no run, or if a verdict is of none of the run's judges.
    """
    manifest, log = Manifest.read(path), RunLog(path / RECORDS)
    judges = {seat.key: None for seat in manifest.panel}
    for record in (*log.answers.values(), *log.labelled.values()):
        for key in record.verdicts.keys() - judges.keys():
            raise InputError(
                f"{path / RECORDS}: the verdict of {key!r} on {record.name} is of no judge of the "
                f"run ({', '.join(judges) or 'it has none'})",
                hint="undo the change to that file, or make the run again",
            )
    return manifest, log


@dataclass(frozen=True, slots=True)
class Tally:
    """A score over ``n`` items: ``mean`` over those that have it and the ``failed`` ones, which
    count 0. ``missing`` were answered but lack it (an unreadable verdict, a reply that does not
    answer): they are left out, and ``least`` and ``most`` are the mean were they all wrong, or all
    right."""

    n: int
    failed: int
    missing: int
    mean: float
    least: float
    most: float


def list_counted(name: str, records: Iterable[Record]) -> list[Record]:
    """List one method's records that count for a score: answers that were scored, readably or not,
    and failed ones whose items can have the score.

    A failed answer has a recall of evidence only if other answers of its method have one: a method
    that ranks nothing has none.
    """
    every = list(records)
    given = [one for one in every if name in one.scores or name in one.verdicts]
    if name.startswith(RANKED) and all(one.failed for one in given):
        return []
    keys = {one.key for one in given if not one.failed}
    return [one for one in every if one.key in keys or (one.failed and _could_have(name, one))]


def _could_have(name: str, record: Record) -> bool:
    judge, item = JUDGES.get(judge_of(name)), item_from_json(record.item)
    return can_have(name, item) if judge is None else bool(judge.needs(item, record))


def tally(name: str, records: Iterable[Record]) -> Tally | None:
    """Average a score over the items of one method that can have it; None if no item has a
    value. A score of many answers together is missing without the extra ``evaluation``, too."""
    if name in AGGREGATES:
        return _tally_together(name, [*records])
    able = list_counted(name, records)
    known = [value for record in able if (value := record.value(name)) is not None]
    failed = sum(record.failed for record in able)
    counted = len(known) + failed
    if not counted:
        return None
    total, n = sum(known), len(able)
    missing = n - counted
    return Tally(n, failed, missing, total / counted, total / n, (total + missing) / n)


def _tally_together(name: str, records: Sequence[Record]) -> Tally | None:
    scored = [Scored(item_from_json(one.item), one) for one in records]
    found = None
    with suppress(UsageError):
        found = AGGREGATES[name].compute(scored)
    if found is None:
        return None
    failed = sum(one.failed for one in records)
    return Tally(found.n, failed, 0, found.mean, found.mean, found.mean)


@dataclass(frozen=True)
class MethodSummary:
    """One method: how many answers it gave, their outcomes, and its scores by name."""

    method: str
    items: int
    unscored: int
    failed: int
    scores: Mapping[str, Tally | None]


def summarize(
    records: Collection[Record], methods: Sequence[str], names: Sequence[str]
) -> list[MethodSummary]:
    """Summarize each method by these scorers and judges."""
    found = []
    for method in methods:
        own = [record for record in records if record.method == method]
        outcomes = Counter(record.outcome for record in own)
        scores = {name: tally(name, own) for name in names}
        found.append(
            MethodSummary(method, len(own), outcomes["unscored"], outcomes["failed"], scores)
        )
    return found
