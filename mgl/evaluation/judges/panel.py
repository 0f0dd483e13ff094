"""Who judges the answers of a run: several judges, and each of them several times.

    >>> [seat.key for seat in panel("entailment", "a", [("entailment", "b")], repeats=1)]
    ['entailment', 'entailment, again 1', 'entailment by b', 'entailment by b, again 1']

The first judge's verdict is the score of an answer, and records have it by the judge's name alone;
others are told apart by their models. A verdict that is asked again, with other seeds and at a
temperature above 0, tells how far its judge agrees with itself, and is no score.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mgl.evaluation.judges.judging import JUDGING
from mgl.evaluation.judges.reliability import again
from mgl.llm.base import Sampling

__all__ = ["Seat", "panel"]


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
        return again(self.repeat) if self.repeat else JUDGING


def panel(
    judge: str | None, model: str | None, others: Iterable[tuple[str, str]], *, repeats: int = 0
) -> tuple[Seat, ...]:
    """Every verdict that is asked for, none without a first judge; ``others`` are further judges
    with their models, and ``repeats`` is how often the verdict of each is asked again."""
    if judge is None or model is None:
        return ()
    judges = [(judge, model, judge), *((name, by, f"{name} by {by}") for name, by in others)]
    return tuple(Seat(*one, repeat) for one in judges for repeat in range(repeats + 1))
