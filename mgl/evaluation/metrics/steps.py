"""How many answers are right at each step, where a memory was made to answer at all of them.

    >>> by_step = right_by_step([{0: "Bern", 1: "Rome"}, {0: "Ann"}], [["Rome"], ["Ann"]])
    >>> [share.mean for share in by_step]
    [0.5, 1.0]

Source: HGMem Fig. 3, which forces an answer at each of six turns; right is what the cascade takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mgl.evaluation.intervals import Interval, wilson_interval
from mgl.evaluation.metrics.cascade import cascade

__all__ = ["right_by_step"]


def right_by_step(
    answers: Sequence[Mapping[int, str]], golds: Sequence[Sequence[str]]
) -> list[Interval]:
    """The share that is right at each step from 0 to the last of any question.

    ``answers`` has, for each question, what was answered at which step. A question that has ended,
    or that failed at a step, keeps its answer of before; one without any is wrong. ValueError where
    there are not as many golds as answers.
    """
    last = max((step for said in answers for step in said), default=-1)
    shares = []
    for step in range(last + 1):
        right = sum(
            cascade(_at(said, step), gold) is not None
            for said, gold in zip(answers, golds, strict=True)
        )
        shares.append(wilson_interval(right, len(golds)))
    return shares


def _at(said: Mapping[int, str], step: int) -> str:
    known = [number for number in said if number <= step]
    return said[max(known)] if known else ""
