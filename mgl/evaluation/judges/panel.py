"""Who judges the answers of a run: several judges, and each of them several times.

    >>> [seat.key for seat in seat_panel("entailment", "a", [("entailment", "b")], repeats=1)]
    ['entailment', 'entailment, again 1', 'entailment by b', 'entailment by b, again 1']

The first judge's verdict is the score of an answer, and records have it by the judge's name alone;
others are told apart by their models. A verdict that is asked again, with other seeds and at a
temperature above 0, tells how far its judge agrees with itself, and is no score.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from mgl.benchmarks.base import Item
from mgl.benchmarks.files import open_file
from mgl.errors import InputError
from mgl.evaluation.judges.judging import JUDGING, resampled_judging
from mgl.llm.base import Sampling
from mgl.types import Question

__all__ = ["LabelledAnswer", "LabelledSet", "Seat", "read_labelled", "seat_panel"]


@dataclass(frozen=True, slots=True)
class Seat:
    """One verdict that is asked for of every answer: ``judge`` is a name of ``JUDGES``, ``model``
    the profile that is asked, ``repeat`` 0 for the verdict itself, and 1, 2, … for it again.

    ``who`` stands for the judge and its model in records, ``key`` for this verdict of theirs.
    """

    judge: str
    model: str
    who: str
    repeat: int = 0

    @property
    def key(self) -> str:
        return f"{self.who}, again {self.repeat}" if self.repeat else self.who

    @property
    def sampling(self) -> Sampling:
        return resampled_judging(self.repeat) if self.repeat else JUDGING


def seat_panel(
    judge: str | None, model: str | None, others: Iterable[tuple[str, str]], *, repeats: int = 0
) -> tuple[Seat, ...]:
    """List every verdict to ask for, none without a first judge; ``others`` are further judges with
    their models, each verdict is repeated ``repeats`` times."""
    if judge is None or model is None:
        return ()
    judges = [(judge, model, judge), *((name, by, f"{name} by {by}") for name, by in others)]
    return tuple(Seat(*one, repeat) for one in judges for repeat in range(repeats + 1))


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer and whether people called it right. The ``id`` of its item is its own."""

    item: Item
    answer: str
    correct: bool


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """The answers of a file in its order, and the file's hash, None if there is no file."""

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
    """The answers of a file; InputError, with the place, if one is not as above, and where two
    are of one id."""
    file = open_file(path)
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
