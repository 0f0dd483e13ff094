"""What a run keeps of each question and each memory: one append-only file of JSON lines.

    >>> log = RunLog(Path("runs/locomo/records.jsonl"))                   # doctest: +SKIP
    >>> log.answers["gam", "conv-26/q4", 0].verdicts["entailment"].score   # doctest: +SKIP
    1.0

A line says its ``kind``: an ``item`` (a question as the benchmark has it), a ``build`` (a memory
that several questions share), an ``answer`` by method, item and repeat, a ``verdict`` on one,
or ``scores`` of one that a model computed. The later of two lines with one key counts. A line holds
everything its scores are computed from. What depends on the machine and the moment is in ``took``
alone, so that a replay gives the same of all else.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from mgl.benchmarks.base import Item
from mgl.errors import InputError, UsageError
from mgl.models.permissions import open_private

LABELLED: Final = "labelled"
"""Stands for the method where the answer is one of the labelled set."""

PEOPLE: Final = "people"
"""The score of such an answer: 1 if people called it right, else 0."""

Key = tuple[str, str, int]
"""The label of a method, the id of an item, and the repeat, from 0."""

Calls = Mapping[str, tuple[str, ...]]
"""Keys of calls, each with the outcomes of its edits in the order in which it proposed them:
``applied``, ``repaired`` or ``rejected``."""

Outcome = Literal["scored", "unscored", "failed"]
"""``unscored``: answered, but without a score (no gold answer, an unreadable verdict); ``failed``:
not answered."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Completions of one stage, issued or replayed alike, and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )


def sum_stages(usages: Iterable[Mapping[str, Spent]]) -> dict[str, Spent]:
    """Add up the completions and tokens of each stage."""
    total: defaultdict[str, Spent] = defaultdict(Spent)
    for usage in usages:
        for stage, spent in usage.items():
            total[stage] += spent
    return dict(total)


def sum_spent(usages: Iterable[Mapping[str, Spent]]) -> Spent:
    """Add up the completions and tokens of all stages."""
    return sum(sum_stages(usages).values(), Spent())


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """A judge's verdict on an answer: ``score`` is 0 to 1, None if its reply was unreadable.

    ``usage`` is what judging cost, by stage.
    """

    score: float | None
    reply: str
    reason: str = ""
    usage: Mapping[str, Spent] = field(default_factory=dict)
    took: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the judge gave no reply at all."""
        return self.score is None and not self.reply


@dataclass(frozen=True)
class Record:
    """One question put to one method.

    ``method`` is its label in the manifest; ``item`` is ``item_to_json`` of the benchmark's item.
    ``reason`` says why it was not answered, and is empty if it was. ``citations`` are as
    ``mgl.memories.results.citation_json`` gives them, each with ``verbatim``: whether its span
    holds its quote. ``scores`` are by scorer, None if the reply does not answer; ``verdicts`` by
    the key of a ``Seat`` (``mgl.evaluation.judges.panel``). ``retrieved`` and ``trace`` are the
    answer's own. ``usage`` is by stage, of the answer alone if the memory is shared, and empty if
    it failed: what was in flight then varies. ``memory`` describes what was read: kind, nodes,
    edges, chunks, marks, compaction ratio, a package's own ``counts``, and ``read_all`` if it was
    every turn of a conversation, none of them chosen. ``calls`` wrote the log of its own memory;
    those of a shared memory are with its build. ``took`` has seconds, in all and by stage, calls by
    their outcome, and the ``keys`` of all calls in the order in which they were made.
    """

    method: str
    item: Mapping[str, Any]
    repeat: int = 0
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
    calls: Calls = field(default_factory=dict)
    credited: tuple[str, ...] = ()
    took: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return self.method, self.item["id"], self.repeat

    @property
    def name(self) -> str:
        """Its name for readers."""
        again = f" ({self.repeat})" if self.repeat else ""
        return f"{self.method}: {self.item['id']}{again}"

    @property
    def failed(self) -> bool:
        return bool(self.reason)

    @property
    def outcome(self) -> Outcome:
        if self.failed:
            return "failed"
        given = [*self.scores.values(), *(one.score for one in self.verdicts.values())]
        return "scored" if any(value is not None for value in given) else "unscored"

    def value(self, name: str) -> float | None:
        """What a scorer or a judge gave; None if it gave nothing."""
        verdict = self.verdicts.get(name)
        return self.scores.get(name) if verdict is None else verdict.score


@dataclass(frozen=True)
class BuildRecord:
    """One memory that several questions share: its source, its cost and its size.

    ``reason`` says why it could not be built; its questions have failed then, and ``usage`` is
    empty as theirs. ``calls`` are those whose edits are its log.
    """

    method: str
    source: str
    usage: Mapping[str, Spent] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    calls: Calls = field(default_factory=dict)
    reason: str = ""
    took: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.method}: {self.source}"


def sum_seconds(rows: Iterable[Record | BuildRecord | VerdictRecord]) -> Counter[str]:
    """Add up the engine's seconds of each stage, of the calls that were issued."""
    total: Counter[str] = Counter()
    for row in rows:
        total.update(row.took.get("stages", {}))
    return total


_ITEM, _BUILD, _RECORD = TypeAdapter(Item), TypeAdapter(BuildRecord), TypeAdapter(Record)
_VERDICT = TypeAdapter(VerdictRecord)


def item_to_json(item: Item) -> dict[str, Any]:
    """Return a benchmark's item as plain JSON values."""
    value: dict[str, Any] = _ITEM.dump_python(item, mode="json")
    return value


def item_from_json(value: Mapping[str, Any]) -> Item:
    """Read an item back; ValidationError if the values are not an item's."""
    return _ITEM.validate_python(value)


def title_build(source: str, after: str) -> str:
    """Name a build by its source and, unless its items are asked at the end, by the turn ``after``
    which they are asked."""
    return f"{source} after {after}" if after else source


class RunLog:
    """The records of a run: in memory by their keys, and in the file as they come.

    A process may be killed while it writes: a last line without its newline is ignored, and
    overwritten by the next row. One process writes at a time. ``labelled`` are the answers that
    people have judged, by their ids.
    """

    def __init__(self, path: Path) -> None:
        """InputError, with the line, if the file holds something else."""
        self.path = path
        self.items: dict[str, Mapping[str, Any]] = {}
        self.answers: dict[Key, Record] = {}
        self.labelled: dict[str, Record] = {}
        self.builds: dict[tuple[str, str], BuildRecord] = {}
        try:
            data = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise InputError(f"cannot read {path}: {error}", hint="name another file") from error
        self._length = data.rfind(b"\n") + 1
        for number, line in enumerate(data[: self._length].split(b"\n")[:-1], start=1):
            try:
                self._take({**json.loads(line)})
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                raise InputError(
                    f"{path}, line {number} is not a row of a run", hint="name another file"
                ) from error

    def _add(self, row: Mapping[str, Any]) -> None:
        """Append a row; UsageError if the file cannot be written."""
        line = encode_row(row)
        try:
            with open_private(self.path, "ab") as file:
                file.truncate(self._length)
                file.write(line)
        except OSError as error:
            raise UsageError(
                f"cannot write {self.path}: {error}", hint="make room, or name another file"
            ) from error
        self._length += len(line)
        self._take(json.loads(line))

    def add_answer(self, record: Record) -> None:
        """Keep an answer without its verdicts, which are lines of their own."""
        values = {**vars(record), "kind": "answer"}
        del values["verdicts"]
        if record.method != LABELLED:
            if record.item["id"] not in self.items:
                self._add({"kind": "item", **record.item})
            values["item"] = record.item["id"]
        self._add(values)

    def add_verdict(self, record: Record, judge: str, verdict: VerdictRecord) -> None:
        """Keep a verdict on an answer."""
        self._add({"kind": "verdict", **_name_answer(record), "judge": judge, **asdict(verdict)})

    def add_scores(self, record: Record, scores: Mapping[str, float]) -> None:
        """Keep scores that were computed after the answer."""
        self._add({"kind": "scores", **_name_answer(record), "scores": scores})

    def add_build(self, record: BuildRecord) -> None:
        self._add({"kind": "build", **vars(record)})

    def find_build(self, record: Record) -> BuildRecord | None:
        """Find the build of the memory that an answer shares with others; None if it was its
        own."""
        item = record.item
        return self.builds.get((record.method, title_build(item["source"], item.get("after", ""))))

    def lines(self) -> dict[str, bytes]:
        """Return what a replay has to repeat, each item, build and answer by a name for
        readers. That is all of a record but ``took``."""
        found: dict[str, Any] = {f"question {id}": item for id, item in self.items.items()}
        records = (self.builds, self.answers, self.labelled)
        found |= {one.name: asdict(one) for kind in records for one in kind.values()}
        return {
            name: json.dumps(_without_took(one), sort_keys=True).encode()
            for name, one in found.items()
        }

    def _take(self, row: dict[str, Any]) -> None:
        """Keep a row; ValueError, TypeError or KeyError if it does not belong here."""
        kind = row.pop("kind")
        if kind == "item":
            self.items[row["id"]] = item_to_json(item_from_json(row))
        elif kind == "build":
            build = _BUILD.validate_python(row)
            self.builds[build.method, build.source] = build
        elif kind == "answer":
            if row["method"] != LABELLED:  # which has items of its own
                row["item"] = self.items[row["item"]]
            self._put(_RECORD.validate_python(row))
        else:
            method, item, repeat = (row.pop(name) for name in ("method", "item", "repeat"))
            is_labelled = method == LABELLED
            record = self.labelled[item] if is_labelled else self.answers[method, item, repeat]
            if kind == "verdict":
                judge = row.pop("judge")
                verdict = _VERDICT.validate_python(row)
                self._put(replace(record, verdicts={**record.verdicts, judge: verdict}))
            elif kind == "scores":
                self._put(replace(record, scores={**record.scores, **row["scores"]}))
            else:
                raise KeyError(kind)

    def _put(self, record: Record) -> None:
        if record.method == LABELLED:
            self.labelled[record.item["id"]] = record
        else:
            self.answers[record.key] = record


def _name_answer(record: Record) -> dict[str, Any]:
    return dict(zip(("method", "item", "repeat"), record.key, strict=True))


def _without_took(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_took(one) for name, one in value.items() if name != "took"}
    return value


def encode_row(row: Mapping[str, Any]) -> bytes:
    """Encode a row; lone surrogates, which UTF-8 cannot hold, are escaped."""
    try:
        return (json.dumps(row, ensure_ascii=False, default=asdict) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(row, default=asdict) + "\n").encode()
