"""What a benchmark's files hold, and what is wrong with them: ``mgl eval check``.

Corrections of labels that are known to be wrong are JSON lines (or a JSON list) that the user
writes or fetches:

    {"id": "conv-26/q3", "golds": ["12 May 2023"], "why": "the turn says Friday"}

``golds`` are the right answers; without any, the question has none and is left out of a corrected
score.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from mgl.benchmarks.base import Dataset, Item
from mgl.benchmarks.files import open_file, refuse_duplicates
from mgl.errors import InputError
from mgl.types import Conversation, Source


class DataCorrection(BaseModel):
    """The right answers to an item, none if it has none, and why."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    golds: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Checked:
    """``items`` are how many there are by category, ``sources`` by source. Ids of items: those
    ``without_gold`` or rubric, with their ``evidence`` that points nowhere, asked twice of one
    source (``repeated``, together), and with one gold answer twice (``same_golds``)."""

    items: Mapping[str, int]
    sources: Mapping[str, int]
    without_gold: tuple[str, ...]
    evidence: Mapping[str, tuple[str, ...]]
    repeated: tuple[tuple[str, ...], ...]
    same_golds: tuple[str, ...]
    notes: tuple[str, ...]


def check_dataset(dataset: Dataset) -> Checked:
    """Look at all items and sources of a dataset; InputError if a source cannot be read."""
    items = dataset.items
    of_source: dict[str, list[Item]] = defaultdict(list)
    asked: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for item in items:
        of_source[item.source].append(item)
        text = " ".join(item.question.text.lower().split())
        asked[item.source, item.after, text].append(item.id)
    lost: dict[str, tuple[str, ...]] = {}
    for name, own in of_source.items():
        source = dataset.sources[name]()
        known = _places(source)
        for item in own:
            if known and (nowhere := tuple(id for id in item.evidence if id not in known)):
                lost[item.id] = nowhere
    return Checked(
        items=dict(Counter(item.category for item in items)),
        sources={name: len(own) for name, own in of_source.items()},
        without_gold=tuple(item.id for item in items if not (item.golds or item.rubric)),
        evidence=lost,
        repeated=tuple(tuple(ids) for ids in asked.values() if len(ids) > 1),
        same_golds=tuple(
            item.id
            for item in items
            if len({gold.casefold().strip(" .") for gold in item.golds}) < len(item.golds)
        ),
        notes=dataset.notes,
    )


def _places(source: Source) -> set[str]:
    """What evidence may name: the turns and sessions of a conversation; nothing of a document."""
    if not isinstance(source, Conversation):
        return set()
    turns = {turn.id for turn in source.turns}
    return turns | {turn.partition(":")[0] for turn in turns}


def read_corrections(path: Path, items: Sequence[Item]) -> dict[str, DataCorrection]:
    """Read corrections by the ids of their items; InputError, with the place, for an invalid one
    and for an id that no item has."""
    file = open_file(path)
    rows = file.rows(DataCorrection, hint='each line is {"id": …, "golds": […], "why": …}')
    refuse_duplicates(path, (row.id for row in rows))
    known = {item.id for item in items}
    if unknown := [row.id for row in rows if row.id not in known]:
        raise InputError(
            f"{path}: no item has the id {unknown[0]!r}",
            hint="ids are those of `mgl eval check --json`, and of a run's records",
        )
    return {row.id: row for row in rows}


def correct_item(item: Item, corrections: Mapping[str, DataCorrection]) -> Item | None:
    """The item with its right answers; None if it has none."""
    found = corrections.get(item.id)
    if found is None:
        return item
    return replace(item, golds=found.golds) if found.golds else None
