"""The folder of a run: its manifest, its records, and the stores of memories at work.

    DIR/manifest.json   what was asked for and what it was made with
    DIR/records.jsonl   one line per item and method
    DIR/builds.jsonl    one line per memory that several items share
    DIR/labelled.jsonl  one line per answer that people have judged, with the judges' verdicts
    DIR/pairs.jsonl     one line per pair of answers and judging model that compared them
    DIR/seconds.jsonl   how long each took; never compared
    DIR/work/           one store per memory, removed when no longer needed

During a run lines are in the order of arrival, and the later of two with one key counts. A complete
run has all but the seconds rewritten in the order of methods and items.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from mgl.errors import UsageError
from mgl.evaluation.records import (
    BuildRecord,
    JsonLines,
    PairRecord,
    Record,
    scratch_path,
)
from mgl.evaluation.runs.manifest import MANIFEST
from mgl.models.files import hold_lock

__all__ = ["KEPT", "Key", "PairKey", "RunFolder", "Score", "Summary", "Table", "summarize"]

Key = tuple[str, str]
"""The label of a method, and the id of an item or the name of a source."""

PairKey = tuple[str, str, str, str]
"""The id of an item, the labels of two methods, and the profile of the judging model."""

KEPT: Final[Mapping[str, type]] = {
    "records.jsonl": Record,
    "builds.jsonl": BuildRecord,
    "labelled.jsonl": Record,
    "pairs.jsonl": PairRecord,
}
"""What a replay must give again, byte for byte: each file, and what its lines are."""

_LOCK = ".lock"
KeyT = TypeVar("KeyT")
RowT = TypeVar("RowT", Record, BuildRecord, PairRecord)


class Table(dict[KeyT, RowT]):
    """One file of a run as records by key, the later of two with one key counting."""

    def __init__(self, path: Path, key: Callable[[RowT], KeyT]) -> None:
        """InputError, with the line, if the file holds something else."""
        super().__init__()
        self._lines = JsonLines(path)
        self._key: Callable[[RowT], KeyT] = key
        adapter: TypeAdapter[RowT] = TypeAdapter(KEPT[path.name])
        for number, row in enumerate(self._lines.rows, start=1):
            try:
                record = adapter.validate_python(row)
            except ValidationError as error:
                raise self._lines.fault(number) from error
            self[key(record)] = record

    def add(self, record: RowT) -> None:
        """Keep a record, in the file too."""
        self._lines.add(asdict(record))
        self[self._key(record)] = record

    def rewrite(self, keys: Iterable[KeyT] | None = None) -> None:
        """Write the records of these keys in this order, all of them by default. A file that never
        held a line is not created."""
        rows = [asdict(self[key]) for key in (self if keys is None else keys)]
        if rows or self._lines.rows:
            self._lines.rewrite(rows)


class RunFolder:
    """The tables of a run: ``records`` and ``builds`` by method and item or source, ``labelled`` by
    the id of the answer, ``pairs`` by item, methods and model."""

    def __init__(self, path: Path) -> None:
        """InputError, with the line, if a file holds something else."""
        self.path = path
        self.records: Table[Key, Record] = Table(
            path / "records.jsonl", lambda one: (one.method, one.item["id"])
        )
        self.builds: Table[Key, BuildRecord] = Table(
            path / "builds.jsonl", lambda one: (one.method, one.source)
        )
        self.labelled: Table[str, Record] = Table(
            path / "labelled.jsonl", lambda one: str(one.item["id"])
        )
        self.pairs: Table[PairKey, PairRecord] = Table(
            path / "pairs.jsonl", lambda one: (one.item, one.one, one.other, one.model)
        )
        self._seconds = JsonLines(path / "seconds.jsonl")

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """Make the folder of a new run; UsageError if the path holds something already."""
        if (path / MANIFEST).exists():
            raise UsageError(
                f"{path} already holds a run",
                hint=f"resume it with `mgl eval resume {path}`, or name another --out",
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
            leftovers = {_LOCK, scratch_path(path / MANIFEST).name}
            empty = all(file.name in leftovers for file in path.iterdir())
        except OSError as error:
            raise UsageError(
                f"{path} cannot be a run's folder: {error.strerror}", hint="name another --out"
            ) from error
        if not empty:
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

    def add_seconds(self, row: Mapping[str, Any]) -> None:
        self._seconds.add(row)

    def drop_failures(self) -> tuple[int, int]:
        """Forget failed items, and verdicts that judges failed to give; return how many of each."""
        failed = [key for key, record in self.records.items() if record.outcome == "failed"]
        for key in failed:
            del self.records[key]
        for key in [key for key, record in self.builds.items() if record.reason]:
            del self.builds[key]
        verdicts = _drop_verdicts(self.records) + _drop_verdicts(self.labelled)
        pairs = [key for key, one in self.pairs.items() if one.forth.failed or one.back.failed]
        for pair in pairs:
            del self.pairs[pair]
        for table in (self.records, self.builds, self.labelled, self.pairs):
            table.rewrite()
        return len(failed), verdicts + len(pairs)

    def store_path(self, kind: str, key: Key) -> Path:
        """Where the store of a build or an item lies while it is needed."""
        name = hashlib.sha256("\0".join((kind, *key)).encode()).hexdigest()[:16]
        folder = self.path / "work"
        folder.mkdir(exist_ok=True)
        return folder / f"{kind}-{name}.sqlite"

    def remove_stores(self) -> None:
        shutil.rmtree(self.path / "work", ignore_errors=True)


def _drop_verdicts(records: dict[Any, Record]) -> int:
    dropped = 0
    for key, record in records.items():
        given = {seat: verdict for seat, verdict in record.verdicts.items() if not verdict.failed}
        dropped += len(record.verdicts) - len(given)
        records[key] = replace(record, verdicts=given)
    return dropped


@dataclass(frozen=True, slots=True)
class Score:
    """The mean over all items that can have the score (None if the method has none), and over the
    ``n`` that have it (None if none does)."""

    mean: float | None
    of_scored: float | None
    n: int


@dataclass(frozen=True)
class Summary:
    """One method: how many items it had, their outcomes, and its scores by name."""

    method: str
    items: int
    scored: int
    unscored: int
    failed: int
    scores: Mapping[str, Score] = field(default_factory=dict)


def summarize(
    records: Collection[Record], methods: Sequence[str], names: Sequence[str]
) -> list[Summary]:
    """Summarize each method by these scorers and judges.

    Failed and unscored items count 0 in a mean. Recall of evidence is over the items whose evidence
    the benchmark names, and a method that retrieves nothing has none.
    """
    found = []
    for method in methods:
        own = [record for record in records if record.method == method]
        outcomes = Counter(record.outcome for record in own)
        scores = {name: _mean_score(name, own) for name in names} if own else {}
        counts = (outcomes["scored"], outcomes["unscored"], outcomes["failed"])
        found.append(Summary(method, len(own), *counts, scores))
    return found


def _mean_score(name: str, records: Sequence[Record]) -> Score:
    able = [record for record in records if record.has_place_for(name)]
    values = [value for record in able if (value := record.value(name)) is not None]
    answered = any(record.outcome != "failed" for record in able)
    if not able or (answered and not values and name.startswith("evidence_")):
        return Score(None, None, 0)
    total = sum(values)
    return Score(total / len(able), total / len(values) if values else None, len(values))
