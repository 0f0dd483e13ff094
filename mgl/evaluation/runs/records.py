"""What a run keeps of each question and of each memory that it built, as plain JSON values.

A record holds all that its scores are computed from, so they can be computed again; it holds no
time, so that a run that is replayed gives the same bytes. Times and machines are in the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from pydantic import TypeAdapter

from mgl.benchmarks.base import Item

__all__ = [
    "LABELLED",
    "PEOPLE",
    "BuildRecord",
    "Outcome",
    "PairRecord",
    "Record",
    "Spent",
    "VerdictRecord",
    "item_from",
    "item_json",
]

LABELLED: Final = "labelled"
"""In place of a method's label: an answer of the labelled set."""

PEOPLE: Final = "people"
"""The score of such an answer: 1 where people called it right, else 0."""

Outcome = Literal["scored", "unscored", "failed"]
"""``unscored``: answered, and a score could not be had (no gold answer, a verdict that could not be
read); ``failed``: not answered. Both say why."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What one stage took: completions (issued or replayed alike) and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class VerdictRecord:
    """What a judge said of an answer: ``score`` 0 to 1, None where its reply could not be read.

    ``usage`` is what judging took, by stage.
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

    ``method`` is its label in the manifest. ``item`` is everything of the benchmark's item that a
    scorer needs. ``citations`` are as ``mgl.memories.results.citation_json`` has them, each with
    ``verbatim``: whether its span holds its quote. ``scores`` are by scorer, ``verdicts``
    by the key of the judge's ``Seat`` (``mgl.evaluation.judges.panel``).
    ``retrieved`` and ``trace`` are the answer's own.
    ``usage`` is by stage, of the answer alone where the memory is shared, and empty for one that
    failed: what was under way then is not the same each time. ``memory`` says what it
    was read from: kind, nodes, edges, chunks, marks, compaction ratio.
    """

    method: str
    item: Mapping[str, Any]
    outcome: Outcome
    reason: str = ""
    answer: str = ""
    confidence: str = ""
    citations: tuple[Mapping[str, Any], ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    verdicts: Mapping[str, VerdictRecord] = field(default_factory=dict)
    usage: Mapping[str, Spent] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    retrieved: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuildRecord:
    """One memory that several questions share: what it was built from, what it took and its size.

    ``reason`` says why it could not be built; its questions have then failed, and ``usage`` is
    empty as theirs.
    """

    method: str
    source: str
    usage: Mapping[str, Spent] = field(default_factory=dict)
    memory: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class PairRecord:
    """Two methods' answers to one item, by their labels, as a judging model compared them: their
    scores are 1 where the answer that came first was preferred, 0 the second, 0.5 neither.
    ``forth`` had the answer of ``one`` first, ``back`` that of ``other``."""

    item: str
    one: str
    other: str
    model: str
    forth: VerdictRecord
    back: VerdictRecord


def item_json(item: Item) -> dict[str, Any]:
    """A benchmark's item as plain JSON values; only a long form of answer is named."""
    asked_at = item.question.asked_at
    value = asdict(item)
    value["question"]["asked_at"] = None if asked_at is None else asked_at.isoformat()
    if item.question.form == "short":
        del value["question"]["form"]
    value["labels"] = dict(item.labels)
    return value


def item_from(value: Mapping[str, Any]) -> Item:
    """The item of its JSON values; ValidationError where they are none."""
    return _ITEM.validate_python(value)


_ITEM = TypeAdapter(Item)
