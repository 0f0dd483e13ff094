"""The questions of a group one by one: what each method answered, and what it read for it.

Texts of evidence are read from the benchmark's files if they are still where the run found them, or
in MGL_DATA, with the same hashes; else the page has their ids alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from mgl import registry
from mgl.benchmarks.base import Dataset
from mgl.benchmarks.files import find_data
from mgl.errors import MglError
from mgl.evaluation.records import Record
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.runs import Group
from mgl.text.groups import format_turn
from mgl.types import Conversation, Source, Span

_MOST: Final = 300
_READ: Final = 10
_RIGHT: Final = 0.5
_LENGTH: Final = 600
_ORDER: Final = ("split", "wrong", "unsure", "right")

Verdict = Literal["right", "wrong", "unsure", "failed"]


@dataclass(frozen=True, slots=True)
class Said:
    """What a method answered, and what the headline makes of it: ``right`` from 0.5 of 1,
    ``unsure`` if its score is missing. ``read`` has the id and the text of the first passages that
    it read, turns with their days, and whether the benchmark names them as evidence."""

    label: str
    verdict: Verdict
    record: Record
    read: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One item, as a record has it. ``kind`` is ``right``, ``wrong`` or ``unsure`` if that holds
    for all methods, and ``split`` if some are right and others wrong. ``evidence`` has the passages
    that hold the answer."""

    item: Mapping[str, Any]
    kind: str
    evidence: tuple[tuple[str, str], ...]
    answers: tuple[Said, ...]


def list_questions(frame: Frame) -> tuple[tuple[Question, ...], int]:
    """List the questions, those first that methods differ on, and how many are left out."""
    answers: dict[str, list[tuple[str, Verdict, Record]]] = {id: [] for id in frame.items}
    for series in frame.group.series:
        for record in series.records:
            if not record.repeat:
                verdict = _judge(record, frame.headline.name)
                answers[record.item["id"]].append((series.label, verdict, record))
    kinds = {id: _sum_up({verdict for _, verdict, _ in own}) for id, own in answers.items()}
    chosen = sorted(kinds, key=lambda id: _ORDER.index(kinds[id]))[:_MOST]
    chosen.sort(key=lambda id: (_ORDER.index(kinds[id]), frame.items[id]["source"]))
    dataset = _find_dataset(frame.group)

    @lru_cache(maxsize=1)
    def open_source(source: str) -> Source | None:
        try:
            return None if dataset is None else dataset.sources[source]()
        except (KeyError, MglError):
            return None

    found = []
    for id in chosen:
        item = frame.items[id]
        source, gold = open_source(item["source"]), set(item["evidence"])
        said = tuple(
            Said(
                label,
                verdict,
                record,
                tuple(
                    (each, text, each in gold or each.partition(":")[0] in gold)
                    for each, text in _quote(source, record.retrieved[:_READ])
                ),
            )
            for label, verdict, record in answers[id]
        )
        evidence = tuple(_quote(source, item["evidence"]))
        found.append(Question(item, kinds[id], evidence, said))
    return tuple(found), len(kinds) - len(found)


def _judge(record: Record, name: str) -> Verdict:
    value = record.value(name)
    if record.failed:
        return "failed"
    return "unsure" if value is None else "right" if value >= _RIGHT else "wrong"


def _sum_up(verdicts: set[Verdict]) -> str:
    is_wrong = bool(verdicts & {"wrong", "failed"})
    if "right" in verdicts:
        return "split" if is_wrong else "right"
    return "wrong" if is_wrong else "unsure"


def _quote(source: Source | None, ids: Iterable[str]) -> list[tuple[str, str]]:
    """Each id with the beginning of its text, empty if it is not known."""
    if source is None:
        return [(id, "") for id in ids]
    if isinstance(source, Conversation):
        lines = {turn.id: format_turn(turn) for turn in source.turns}
        return [(id, lines.get(id, "")[:_LENGTH]) for id in ids]
    found = []
    for id in ids:
        try:
            text = source.quote(Span.at(source.id, id))
        except (ValueError, MglError):
            text = ""
        found.append((id, text[:_LENGTH]))
    return found


def _find_dataset(group: Group) -> Dataset | None:
    """The benchmark's files, if they are here and are those of the run."""
    manifest = group.manifest
    try:
        benchmark = registry.load("benchmark", group.benchmark)
        place = manifest.arguments.data
        if place is None or not place.exists():
            place = find_data(benchmark.about)
        dataset: Dataset | None = None if place is None else benchmark.read(place)
    except MglError:
        return None
    is_same = dataset is not None and dict(dataset.sha256) == dict(manifest.dataset.sha256)
    return dataset if is_same else None
