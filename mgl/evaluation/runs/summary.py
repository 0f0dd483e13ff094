"""What came of each method in a few figures.

The denominator of every mean is all items of the method: what failed or has no score counts 0.
The mean over those that have the score stands beside it. Recall of evidence is over the items whose
evidence the benchmark names, and what retrieves nothing has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from mgl.evaluation.runs.records import Record

__all__ = ["Score", "Summary", "asks", "summaries", "value_of"]

_EVIDENCE: Final = "evidence_"


@dataclass(frozen=True, slots=True)
class Score:
    """The mean of a score over all items that ask for it (None where none do, or the method has no
    such score), and over the ``n`` that have it (None where none do)."""

    mean: float | None
    of_scored: float | None
    n: int


@dataclass(frozen=True)
class Summary:
    """One method: how many items it had, what became of them, and its scores by name."""

    method: str
    items: int
    scored: int
    unscored: int
    failed: int
    scores: Mapping[str, Score] = field(default_factory=dict)


def summaries(
    records: Iterable[Record], methods: Sequence[str], scores: Sequence[str]
) -> list[Summary]:
    """The summary of each method; ``scores`` are names of scorers and judges."""
    by_method: dict[str, list[Record]] = {method: [] for method in methods}
    for record in records:
        by_method[record.method].append(record)
    return [_summary(method, own, scores) for method, own in by_method.items()]


def _summary(method: str, records: Sequence[Record], names: Sequence[str]) -> Summary:
    outcomes = Counter(record.outcome for record in records)
    return Summary(
        method,
        len(records),
        outcomes["scored"],
        outcomes["unscored"],
        outcomes["failed"],
        {name: _score(name, records) for name in names} if records else {},
    )


def _score(name: str, records: Sequence[Record]) -> Score:
    asking = [record for record in records if asks(record, name)]
    found = [value for record in asking if (value := value_of(record, name)) is not None]
    answered = any(record.outcome != "failed" for record in asking)
    if not asking or (answered and not found and name.startswith(_EVIDENCE)):
        return Score(None, None, 0)
    total = sum(found)
    return Score(total / len(asking), total / len(found) if found else None, len(found))


def asks(record: Record, name: str) -> bool:
    """Whether an item can have a score: recall of evidence, only where it names evidence."""
    return not name.startswith(_EVIDENCE) or bool(record.item.get("evidence"))


def value_of(record: Record, name: str) -> float | None:
    """What a scorer or a judge gave; None where it gave nothing."""
    verdict = record.verdicts.get(name)
    return record.scores.get(name) if verdict is None else verdict.score
