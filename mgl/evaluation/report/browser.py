"""The questions of a group one by one: what each method answered, and what it read for it.

Texts of evidence are read from the benchmark's files if they are still where the run found them, or
in MGL_DATA, with the same hashes; else the page has their ids alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from mgl import registry
from mgl.benchmarks.base import Dataset
from mgl.benchmarks.files import find_data
from mgl.errors import MglError
from mgl.evaluation.records import Record
from mgl.evaluation.report.data import Question, number
from mgl.evaluation.report.frame import Frame
from mgl.evaluation.report.runs import Group
from mgl.types import Conversation, Source, Span

__all__ = ["list_questions"]

_MOST: Final = 300
_READ: Final = 10
_RIGHT: Final = 0.5
_LENGTH: Final = 600


def list_questions(frame: Frame) -> tuple[tuple[Question, ...], int]:
    """List the questions, those first that methods differ on, and how many are left out."""
    dataset = _find_dataset(frame.group)
    by_item: dict[str, list[tuple[str, Record]]] = {id: [] for id in frame.items}
    for series in frame.group.series:
        for record in series.records:
            if not record.repeat:
                by_item[record.item["id"]].append((series.label, record))
    order = {"split": 0, "wrong": 1, "unsure": 2, "right": 3}
    name = frame.headline.name
    kinds = {id: _kind([_judge(record, name) for _, record in own]) for id, own in by_item.items()}
    chosen = sorted(by_item, key=lambda id: order[kinds[id]])[:_MOST]
    opened = lru_cache(maxsize=4)(
        lambda source: None if dataset is None else _open(dataset, source)
    )
    found = []
    for id in sorted(chosen, key=lambda id: (order[kinds[id]], frame.items[id]["source"])):
        item = frame.items[id]
        source = opened(item["source"])
        found.append(
            Question(
                id,
                item["question"]["text"],
                " · ".join(filter(None, (item["source"], item["category"]))),
                tuple(item["golds"]),
                kinds[id],
                tuple(_texts(source, item["evidence"])),
                tuple(_describe(label, one, name, source) for label, one in by_item[id]),
            )
        )
    return tuple(found), len(by_item) - len(found)


def _judge(record: Record, name: str) -> str:
    value = record.value(name)
    if record.failed:
        return "failed"
    return "unsure" if value is None else "right" if value >= _RIGHT else "wrong"


def _kind(said: Iterable[str]) -> str:
    found = {"wrong" if each == "failed" else each for each in said}
    if {"right", "wrong"} <= found:
        return "split"
    return next((each for each in ("wrong", "right") if each in found), "unsure")


def _describe(label: str, record: Record, name: str, source: Source | None) -> Mapping[str, Any]:
    scores = {
        each: "unreadable" if value is None else number(value)
        for each, value in record.scores.items()
    }
    verdicts = [
        (judge, "unreadable" if one.score is None else number(one.score), one.reason)
        for judge, one in record.verdicts.items()
    ]
    gold = set(record.item["evidence"])
    read = [
        (id, text, id in gold or id.partition(":")[0] in gold)
        for id, text in _texts(source, record.retrieved[:_READ])
    ]
    return {
        "label": label,
        "verdict": _judge(record, name),
        "answer": record.answer,
        "failed": record.reason,
        "scores": scores,
        "verdicts": verdicts,
        "cited": [each["quote"][:_LENGTH] for each in record.citations],
        "read": read,
        "more": max(0, len(record.retrieved) - _READ),
    }


def _texts(source: Source | None, ids: Iterable[str]) -> list[tuple[str, str]]:
    """Each id with its text, empty if it is not known."""
    if source is None:
        return [(id, "") for id in ids]
    if isinstance(source, Conversation):
        lines = {turn.id: turn.line for turn in source.turns}
        return [(id, lines.get(id, "")[:_LENGTH]) for id in ids]
    found = []
    for id in ids:
        try:
            text = source.quote(Span.at(source.id, id))
        except (ValueError, MglError):
            text = ""
        found.append((id, text[:_LENGTH]))
    return found


def _open(dataset: Dataset, source: str) -> Source | None:
    try:
        return dataset.sources[source]()
    except (KeyError, MglError):
        return None


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
    if dataset is None or dict(dataset.sha256) != dict(manifest.dataset.sha256):
        return None
    return dataset
