"""Answers that people have judged, to hold a judge against: JSON lines, or a JSON list.

    {"question": "Where did Ann go?", "gold": ["Rome"], "answer": "To Rome.", "correct": true}

``gold`` is a text or a list of texts. ``category`` (of LoCoMo's its number), ``id`` and ``passage``
may be there, for judges that read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from mgl.benchmarks.base import Item
from mgl.benchmarks.files import data_file
from mgl.errors import InputError
from mgl.types import Question

__all__ = ["LabelledAnswer", "LabelledSet", "read_labelled"]


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer and whether people called it right. The ``id`` of its item is its own."""

    item: Item
    answer: str
    correct: bool


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """The answers of a file in its order, and the file's hash, None where there is no file."""

    answers: tuple[LabelledAnswer, ...]
    sha256: str | None


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    gold: str | list[str]
    answer: str
    correct: StrictBool
    category: str = ""
    id: str = ""
    passage: str = ""


def read_labelled(path: Path) -> LabelledSet:
    """The answers of a file; InputError, with the place, where one is not as above, and where two
    are of one id."""
    file = data_file(path)
    rows = file.rows(_Row, hint="each answer has question, gold, answer and correct")
    answers: dict[str, LabelledAnswer] = {}
    for number, row in enumerate(rows, start=1):
        golds = (row.gold,) if isinstance(row.gold, str) else tuple(row.gold)
        item = Item(
            row.id or f"answer {number}",
            path.name,
            Question(row.question),
            golds,
            row.category,
            passage=row.passage,
        )
        if item.id in answers:
            raise InputError(
                f"{path} has two answers with the id {item.id!r}", hint="give each its own, or none"
            )
        answers[item.id] = LabelledAnswer(item, row.answer, row.correct)
    return LabelledSet(tuple(answers.values()), file.sha256)
