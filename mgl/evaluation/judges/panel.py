"""Who judges a run's answers: a panel of judges, and the labelled answers to hold them against.

    >>> [seat.key for seat in seat_panel([("entailment", "a"), ("entailment", "b")], repeats=1)]
    ['entailment', 'entailment, again 1', 'entailment by b', 'entailment by b, again 1']

The first judge's verdict is the score of an answer and is recorded under the judge's name alone;
other judges are named with their models. A repeated verdict, sampled with another seed at a
temperature above 0, shows how far its judge agrees with itself, and is not a score.

Answers that people have judged are JSON lines, or a JSON list:

    {"question": "Where did Ann go?", "gold": ["Rome"], "answer": "To Rome.", "correct": true}

``gold`` is a text or a list of texts. ``category`` (of LoCoMo's its number), ``id`` and ``passage``
are optional, for judges that read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from mgl.benchmarks.base import Item
from mgl.benchmarks.files import open_file, refuse_duplicates
from mgl.evaluation.judges.judging import JUDGING, resampled_judging
from mgl.evaluation.records import LABELLED, PEOPLE, Record, item_to_json
from mgl.llm.base import Sampling
from mgl.types import Question


@dataclass(frozen=True, slots=True)
class Seat:
    """One verdict to ask for on every answer: ``judge`` is a name of ``JUDGES``, ``model`` a
    profile, ``repeat`` 0 for the verdict itself and 1, 2, … for its repeats.

    Records name the judge with its model as ``who``, and this verdict as ``key``.
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


def seat_panel(judges: Sequence[tuple[str, str]], *, repeats: int = 0) -> tuple[Seat, ...]:
    """List every verdict that ``judges`` (by name and model) are asked for, each repeated
    ``repeats`` times."""
    return tuple(
        Seat(judge, model, f"{judge} by {model}" if number else judge, repeat)
        for number, (judge, model) in enumerate(judges)
        for repeat in range(repeats + 1)
    )


def judge_of(key: str) -> str:
    """Name the judge of a verdict's key."""
    return key.partition(",")[0].partition(" by ")[0]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid")

    question: str = Field(min_length=1)
    gold: str | list[str]
    answer: str
    correct: StrictBool
    category: str = ""
    id: str = ""
    passage: str = ""


def read_labelled(path: Path) -> tuple[list[Record], str]:
    """Read labelled answers as records of ``LABELLED``, and hash their file; InputError, with the
    place, for an invalid one and a repeated id."""
    file = open_file(path)
    rows = file.rows(_Row, hint="each answer has question, gold, answer and correct")
    records = []
    for number, row in enumerate(rows, start=1):
        item = Item(
            row.id or f"answer {number}",
            path.name,
            Question(row.question),
            (row.gold,) if isinstance(row.gold, str) else tuple(row.gold),
            row.category,
            passage=row.passage,
        )
        scores = {PEOPLE: float(row.correct)}
        records.append(Record(LABELLED, item_to_json(item), answer=row.answer, scores=scores))
    refuse_duplicates(path, (record.item["id"] for record in records))
    return records, file.sha256
