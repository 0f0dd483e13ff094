"""What a run keeps of each question and each memory, as plain JSON, and the files that hold it.

    >>> lines = JsonLines(Path("rows.jsonl"))       # doctest: +SKIP
    >>> lines.add({"id": "q0"})                     # doctest: +SKIP

A record holds everything its scores are computed from, so they can be computed again. It holds no
time, so that a replay gives the same bytes: times and machines are in the manifest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from mgl.benchmarks.base import Item
from mgl.errors import InputError, UsageError

__all__ = [
    "LABELLED",
    "PEOPLE",
    "Answered",
    "BuildRecord",
    "JsonLines",
    "Outcome",
    "PairRecord",
    "Record",
    "Spent",
    "VerdictRecord",
    "item_from_json",
    "item_to_json",
    "replace_file",
    "scratch_path",
]

LABELLED: Final = "labelled"
"""Stands for the method where the answer is one of the labelled set."""

PEOPLE: Final = "people"
"""The score of such an answer: 1 if people called it right, else 0."""

Outcome = Literal["scored", "unscored", "failed"]
"""``unscored``: answered, but without a score (no gold answer, an unreadable verdict); ``failed``:
not answered. The record's ``reason`` says why."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Completions of one stage, issued or replayed alike, and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """A judge's verdict on an answer: ``score`` is 0 to 1, None if its reply was unreadable.

    ``usage`` is what judging cost, by stage.
    """

    score: float | None
    reply: str
    reason: str = ""
    usage: Mapping[str, Spent] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the judge gave no reply at all."""
        return self.score is None and not self.reply


@dataclass(frozen=True)
class Record:
    """One question put to one method.

    ``method`` is its label in the manifest; ``item`` is ``item_to_json`` of the benchmark's item.
    ``citations`` are as ``mgl.memories.results.citation_json`` gives them, each with ``verbatim``:
    whether its span holds its quote. ``scores`` are by scorer, None if the reply does not answer;
    ``verdicts`` are by the key of a ``Seat`` (``mgl.evaluation.judges.panel``). ``retrieved`` and
    ``trace`` are the answer's own.
    ``usage`` is by stage, of the answer alone if the memory is shared, and empty if it failed: what
    was in flight then varies. ``memory`` describes what was read: kind, nodes, edges, chunks,
    marks, compaction ratio.
    """

    method: str
    item: Mapping[str, Any]
    outcome: Outcome
    reason: str = ""
    answer: str = ""
    confidence: str = ""
    citations: tuple[Mapping[str, Any], ...] = ()
    scores: Mapping[str, float | None] = field(default_factory=dict)
    verdicts: Mapping[str, VerdictRecord] = field(default_factory=dict)
    usage: Mapping[str, Spent] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    retrieved: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()

    def value(self, name: str) -> float | None:
        """What a scorer or a judge gave; None if it gave nothing."""
        verdict = self.verdicts.get(name)
        return self.scores.get(name) if verdict is None else verdict.score

    def is_unread(self, name: str) -> bool:
        """Whether there is an answer, or a verdict on it, of which nothing could be made: its value
        is missing, neither right nor wrong."""
        return self.value(name) is None and (name in self.scores or name in self.verdicts)

    def has_place_for(self, name: str) -> bool:
        """Whether the item can have a score: recall of evidence, only if it names evidence."""
        return not name.startswith("evidence_") or bool(self.item.get("evidence"))


@dataclass(frozen=True)
class BuildRecord:
    """One memory that several questions share: its source, its cost and its size.

    ``reason`` says why it could not be built; its questions have failed then, and ``usage`` is
    empty as theirs.
    """

    method: str
    source: str
    usage: Mapping[str, Spent] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class PairRecord:
    """Two methods' answers to one item, by their labels, compared by a judging model.

    A score is 1 if the answer shown first was preferred, 0 for the second, 0.5 for neither.
    ``forth`` showed the answer of ``one`` first, ``back`` that of ``other``.
    """

    item: str
    one: str
    other: str
    model: str
    forth: VerdictRecord
    back: VerdictRecord


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as scorers and judges read it: ``compaction`` is its compaction ratio, if any,
    ``read_all`` whether it was made from every turn of a conversation, of which none was chosen."""

    text: str
    retrieved: tuple[str, ...] = ()
    citations: tuple[Mapping[str, Any], ...] = ()
    compaction: float | None = None
    read_all: bool = False

    @classmethod
    def of(cls, record: Record) -> Answered:
        ratio = record.memory.get("compaction_ratio")
        read_all = record.memory.get("read_all", False)
        return cls(record.answer, tuple(record.retrieved), tuple(record.citations), ratio, read_all)


def item_to_json(item: Item) -> dict[str, Any]:
    """Return a benchmark's item as plain JSON values, without a short form and an empty judge
    prompt."""
    asked_at = item.question.asked_at
    value = asdict(item)
    value["question"]["asked_at"] = None if asked_at is None else asked_at.isoformat()
    if item.question.form == "short":
        del value["question"]["form"]
    if not item.judge_prompt:
        del value["judge_prompt"]
    value["labels"] = dict(item.labels)
    return value


def item_from_json(value: Mapping[str, Any]) -> Item:
    """Read an item back; ValidationError if the values are not an item's."""
    return _ITEM.validate_python(value)


_ITEM = TypeAdapter(Item)


class JsonLines:
    """A file of JSON objects, one a line, that a process may be killed while writing.

    ``rows`` are those in the file, then those added. A last line without its newline is ignored,
    and overwritten by the next row. One process writes at a time.
    """

    def __init__(self, path: Path) -> None:
        """InputError, with the line, if the file holds something else."""
        self.path = path
        self.rows: list[dict[str, Any]] = []
        try:
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"cannot read {path}: {error}", hint="name another file") from error
        self._length = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._length].split(b"\n")[:-1], start=1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self.fault(number) from error
            if not isinstance(row, dict):
                raise self.fault(number)
            self.rows.append(row)

    def fault(self, number: int) -> InputError:
        """Return the error that line ``number``, from 1, is not what belongs here."""
        return InputError(
            f"{self.path}, line {number} is not a row of a run", hint="name another file"
        )

    def add(self, row: Mapping[str, Any]) -> None:
        """Append a row; UsageError if the file cannot be written."""
        line = _to_line(row)
        try:
            with self.path.open("ab") as file:
                file.truncate(self._length)
                file.write(line)
        except OSError as error:
            raise UsageError(
                f"cannot write {self.path}: {error}", hint="make room, or name another file"
            ) from error
        self._length += len(line)
        self.rows.append(json.loads(line))

    def rewrite(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace all rows at once."""
        lines = [_to_line(row) for row in rows]
        replace_file(self.path, b"".join(lines))
        self._length = sum(map(len, lines))
        self.rows = [json.loads(line) for line in lines]


def _to_line(row: Mapping[str, Any]) -> bytes:
    """Encode a row; lone surrogates, which UTF-8 cannot hold, are escaped."""
    try:
        return (json.dumps(row, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(row) + "\n").encode()


def scratch_path(path: Path) -> Path:
    """Where ``replace_file`` writes first."""
    return path.with_name(f".{path.name}.new")


def replace_file(path: Path, data: bytes) -> None:
    """Write a file atomically: the old or the new one exists at every moment. UsageError."""
    scratch = scratch_path(path)
    try:
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error}", hint="name another place") from error
