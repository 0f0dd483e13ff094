"""Answers that people have judged, to hold a judge against: a JSON line each.

    {"question": "Where did Ann go?", "gold": ["Rome"], "answer": "To Rome.", "correct": true}

``gold`` is a text or a list of texts. ``category`` (of LoCoMo's its number), ``id`` and ``passage``
may be there, for judges that read them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from mgl.benchmarks.base import Item
from mgl.errors import InputError
from mgl.evaluation.metrics.answered import Answered
from mgl.text.encoding import decode
from mgl.text.files import read_bytes
from mgl.types import Question

__all__ = ["Labelled", "read_labelled"]


@dataclass(frozen=True, slots=True)
class Labelled:
    """An answer and whether people called it right."""

    item: Item
    answered: Answered
    correct: bool


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    gold: str | list[str]
    answer: str
    correct: StrictBool
    category: str = ""
    id: str = ""
    passage: str = ""


def read_labelled(path: Path) -> list[Labelled]:
    """The answers of a file in its order; InputError, with the line, where one is not as above."""
    read = []
    for number, line in enumerate(decode(read_bytes(path), path.name).text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = _Row.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise InputError(
                f"{path}, line {number}: {place}: {first['msg']}".replace(": :", ":"),
                hint="each line has question, gold, answer and correct",
            ) from error
        golds = (row.gold,) if isinstance(row.gold, str) else tuple(row.gold)
        item = Item(
            row.id or f"line {number}",
            path.name,
            Question(row.question),
            golds,
            row.category,
            passage=row.passage,
        )
        read.append(Labelled(item, Answered(row.answer), row.correct))
    if not read:
        raise InputError(f"{path} has no answers", hint="give a file with a JSON line an answer")
    return read
