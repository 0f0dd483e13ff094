"""The folder of a run: its manifest, what came of each item and build, and the stores at work.

    DIR/manifest.json   what was asked for and what it was made with
    DIR/records.jsonl   one line an item and method
    DIR/builds.jsonl    one line a memory that several items share
    DIR/labelled.jsonl  one line an answer that people have judged, with the judges' verdicts
    DIR/pairs.jsonl     one line two answers and judging model, which compared them
    DIR/seconds.jsonl   how long each took; never compared
    DIR/work/           a store for each memory, removed when it is needed no more

While a run goes on, lines are in the order in which they came and the later of two of one item
counts. When it is complete, all but the seconds are rewritten in the order of methods and items.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from mgl.errors import UsageError
from mgl.evaluation.runs.lines import JsonLines, scratch_of
from mgl.evaluation.runs.manifest import MANIFEST
from mgl.evaluation.runs.records import BuildRecord, PairRecord, Record
from mgl.models.weights.lock import exclusive

__all__ = ["KEPT", "Key", "PairKey", "RunFolder"]

Key = tuple[str, str]
"""The label of a method, and the id of an item or the name of a source."""

PairKey = tuple[str, str, str, str]
"""The id of an item, the labels of two methods, and the profile of the model that compared them."""

KEPT: Final = {
    "records.jsonl": Record,
    "builds.jsonl": BuildRecord,
    "labelled.jsonl": Record,
    "pairs.jsonl": PairRecord,
}
"""What a replay must give again, byte for byte: each file, and what its lines are."""

_LOCK = ".lock"
_RECORD = TypeAdapter(Record)
_BUILD = TypeAdapter(BuildRecord)
_PAIR = TypeAdapter(PairRecord)


class RunFolder:
    """``records`` and ``builds`` are what is known, by method and by item or source; ``labelled``
    by the id of the answer."""

    def __init__(self, path: Path) -> None:
        """InputError, with the line, where a file holds something else."""
        self.path = path
        self._record_lines = JsonLines(path / "records.jsonl")
        self._build_lines = JsonLines(path / "builds.jsonl")
        self._labelled_lines = JsonLines(path / "labelled.jsonl")
        self._pair_lines = JsonLines(path / "pairs.jsonl")
        self._seconds = JsonLines(path / "seconds.jsonl")
        records = _parsed(self._record_lines, _RECORD)
        builds = _parsed(self._build_lines, _BUILD)
        self.records: dict[Key, Record] = {(one.method, one.item["id"]): one for one in records}
        self.builds: dict[Key, BuildRecord] = {(one.method, one.source): one for one in builds}
        labelled = _parsed(self._labelled_lines, _RECORD)
        compared = _parsed(self._pair_lines, _PAIR)
        self.labelled: dict[str, Record] = {one.item["id"]: one for one in labelled}
        self.pairs: dict[PairKey, PairRecord] = {_pair_key(one): one for one in compared}

    @classmethod
    def begun(cls, path: Path) -> RunFolder:
        """A new run's folder. UsageError where the path holds something already."""
        if (path / MANIFEST).exists():
            raise UsageError(
                f"{path} holds a run already",
                hint=f"`mgl eval resume {path}` goes on with it; or name another --out",
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
            left = {_LOCK, scratch_of(path / MANIFEST).name}
            empty = all(file.name in left for file in path.iterdir())
        except OSError as error:
            raise UsageError(
                f"{path} cannot be a run's folder: {error.strerror}", hint="name another --out"
            ) from error
        if not empty:
            raise UsageError(f"{path} is not empty", hint="name another --out")
        return cls(path)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Work on it alone; UsageError where another process does."""

        def taken() -> None:
            raise UsageError(
                f"another mgl works on {self.path}", hint="let it finish, or end it first"
            )

        with exclusive(self.path / _LOCK, taken):
            yield

    def add(self, record: Record) -> None:
        self._record_lines.add(asdict(record))
        self.records[record.method, record.item["id"]] = record

    def add_build(self, record: BuildRecord) -> None:
        self._build_lines.add(asdict(record))
        self.builds[record.method, record.source] = record

    def add_labelled(self, record: Record) -> None:
        self._labelled_lines.add(asdict(record))
        self.labelled[record.item["id"]] = record

    def add_pair(self, record: PairRecord) -> None:
        self._pair_lines.add(asdict(record))
        self.pairs[_pair_key(record)] = record

    def add_seconds(self, row: Mapping[str, Any]) -> None:
        self._seconds.add(row)

    def forget_failed(self) -> tuple[int, int]:
        """Take what failed as not done, and verdicts that judges failed to give as not asked for;
        how many items, and how many verdicts that are."""
        failed = [key for key, record in self.records.items() if record.outcome == "failed"]
        for key in failed:
            del self.records[key]
        for key in [key for key, record in self.builds.items() if record.reason]:
            del self.builds[key]
        lacking = _forget_verdicts(self.records) + _forget_verdicts(self.labelled)
        uncompared = [key for key, one in self.pairs.items() if one.forth.failed or one.back.failed]
        for pair in uncompared:
            del self.pairs[pair]
        self._record_lines.rewrite(map(asdict, self.records.values()))
        self._build_lines.rewrite(map(asdict, self.builds.values()))
        _rewrite(self._labelled_lines, self.labelled.values())
        _rewrite(self._pair_lines, self.pairs.values())
        return len(failed), lacking + len(uncompared)

    def finish(self, items: Iterable[Key], builds: Iterable[Key]) -> None:
        """Put the lines into this order, one each."""
        self._record_lines.rewrite(asdict(self.records[key]) for key in items)
        self._build_lines.rewrite(asdict(self.builds[key]) for key in builds if key in self.builds)

    def finish_judging(self, labelled: Iterable[str], pairs: Iterable[PairKey]) -> None:
        """As ``finish``, of what tells how far the judges can be relied on, where there is any."""
        _rewrite(self._labelled_lines, [self.labelled[key] for key in labelled])
        _rewrite(self._pair_lines, [self.pairs[key] for key in pairs])

    def store(self, kind: str, key: Key) -> Path:
        """Where the store of a build or an item lies while it is needed."""
        name = hashlib.sha256("\0".join((kind, *key)).encode()).hexdigest()[:16]
        folder = self.path / "work"
        folder.mkdir(exist_ok=True)
        return folder / f"{kind}-{name}.sqlite"

    def remove_stores(self) -> None:
        """Remove every store."""
        if (self.path / "work").is_dir():
            shutil.rmtree(self.path / "work")


def _pair_key(record: PairRecord) -> PairKey:
    return record.item, record.one, record.other, record.model


def _rewrite(lines: JsonLines, records: Collection[Record | PairRecord]) -> None:
    """Put these in place of all; what never held a line is not made."""
    if records or lines.rows:
        lines.rewrite(map(asdict, records))


def _forget_verdicts(records: dict[Any, Record]) -> int:
    """Take the verdicts that judges failed to give out of the records; how many those are."""
    lacking = 0
    for key, record in records.items():
        given = {seat: verdict for seat, verdict in record.verdicts.items() if not verdict.failed}
        lacking += len(record.verdicts) - len(given)
        records[key] = replace(record, verdicts=given)
    return lacking


def _parsed(lines: JsonLines, adapter: TypeAdapter[Any]) -> list[Any]:
    found = []
    for number, row in enumerate(lines.rows, start=1):
        try:
            found.append(adapter.validate_python(row))
        except ValidationError as error:
            raise lines.fault(number) from error
    return found
