"""What was answered, as scores and judges read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mgl.benchmarks.base import Item
from mgl.evaluation.runs.records import Record

__all__ = ["Answered", "Scored"]


@dataclass(frozen=True, slots=True)
class Answered:
    """``retrieved`` is ``Answer.retrieved``; ``citations`` are as a record has them;
    ``compaction`` is the answer's compaction ratio, None where it has none."""

    text: str
    retrieved: tuple[str, ...] = ()
    citations: tuple[Mapping[str, Any], ...] = ()
    compaction: float | None = None

    @classmethod
    def of(cls, record: Record) -> Answered:
        """What a record says was answered."""
        ratio = record.memory.get("compaction_ratio")
        return cls(record.answer, tuple(record.retrieved), tuple(record.citations), ratio)


@dataclass(frozen=True, slots=True)
class Scored:
    """One item of a method and what was answered, None where that failed."""

    item: Item
    answered: Answered | None
