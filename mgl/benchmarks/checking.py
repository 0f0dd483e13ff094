"""What is wrong with a benchmark's files: ``mgl data show``.

>>> check_dataset(dataset).evidence["conv-26/q3"]                     # doctest: +SKIP
('D1:99',)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from mgl.benchmarks.base import Dataset, Item
from mgl.types import Conversation, Source

__all__ = ["Faults", "check_dataset"]


@dataclass(frozen=True)
class Faults:
    """Ids of items: with ``evidence`` that points nowhere, asked twice of one source (``repeated``,
    together), and with one gold answer twice (``same_golds``)."""

    evidence: Mapping[str, tuple[str, ...]]
    repeated: tuple[tuple[str, ...], ...]
    same_golds: tuple[str, ...]


def check_dataset(dataset: Dataset) -> Faults:
    """Look at all items and sources of a dataset; InputError if a source cannot be read."""
    of_source: dict[str, list[Item]] = defaultdict(list)
    asked: dict[tuple[str, str], list[str]] = defaultdict(list)
    for item in dataset.items:
        of_source[item.source].append(item)
        asked[item.source, " ".join(item.question.text.lower().split())].append(item.id)
    lost: dict[str, tuple[str, ...]] = {}
    for name, own in of_source.items():
        known = _places(dataset.sources[name]())
        for item in own:
            if known and (nowhere := tuple(id for id in item.evidence if id not in known)):
                lost[item.id] = nowhere
    return Faults(
        evidence=lost,
        repeated=tuple(tuple(ids) for ids in asked.values() if len(ids) > 1),
        same_golds=tuple(
            item.id
            for item in dataset.items
            if len({gold.casefold().strip(" .") for gold in item.golds}) < len(item.golds)
        ),
    )


def _places(source: Source) -> set[str]:
    """What evidence may name: the turns and sessions of a conversation; nothing of a document."""
    if not isinstance(source, Conversation):
        return set()
    turns = {turn.id for turn in source.turns}
    return turns | {turn.partition(":")[0] for turn in turns}
