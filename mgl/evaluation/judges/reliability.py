"""How reliable a judge is: with itself, with scores by rule, with people, and its biases.

    >>> found = agreement([1, 0, 1, None], [1, 0, 0, 1])
    >>> found.compared, found.unread, round(found.share.mean, 2)
    (3, 1, 0.67)

- Repeats: the same verdicts sampled again with other seeds at a temperature above 0
  (``repeat_agreement``; ``--judge-repeats``).
- Scores by rule, where both apply: verdicts against ``cascade_mindgraph`` or ``choice_letter``. On
  an answer that is word for word the reference a judge should agree (``agreement``).
- People: verdicts against labels (``mgl.evaluation.judges.panel``; ``--judge-labels``).
- Position: two answers in both orders; a fair judge prefers the same answer (``position_bias``;
  ``--judge-pairs``).
- Length: longer answers should not score higher for it (``length_bias``).

Cohen's kappa takes out chance agreement (Educ. Psych. Measurement 1960). An unreadable verdict is
compared with nothing, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from mgl.evaluation.judges.judging import NEITHER
from mgl.evaluation.statistics import (
    Interval,
    bootstrap_interval,
    resample_interval,
    wilson_interval,
)

Verdicts = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Agreement:
    """``share`` is of the compared verdicts that are the same. ``kappa`` is None if it says
    nothing: where there are other verdicts than 0 and 1, or both sides say the same of all.
    ``one_higher`` is the share of those that differ in which the first is the higher."""

    compared: int
    unread: int
    share: Interval
    kappa: Interval | None
    one_higher: float | None


def agreement(one: Verdicts, other: Verdicts, *, tolerance: float = 0.0) -> Agreement | None:
    """Compare verdicts on the same answers; None if none can be compared.

    ``tolerance`` is how far graded verdicts (HGMem's) may lie apart and count as the same.
    ValueError if there are not as many of both.
    """
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    if not pairs:
        return None
    left, right = np.array(pairs, dtype=np.float64).T
    same = np.abs(left - right) <= tolerance + 1e-9
    apart = left[~same] > right[~same]
    return Agreement(
        compared=len(pairs),
        unread=len(one) - len(pairs),
        share=wilson_interval(int(same.sum()), len(pairs)),
        kappa=_kappa(left, right),
        one_higher=float(apart.mean()) if apart.size else None,
    )


def repeat_agreement(repeats: Sequence[Verdicts]) -> Interval | None:
    """Average over the answers how often two of an answer's verdicts agree.

    ``repeats`` has one list of verdicts a repeat. Answers with fewer than two verdicts that could
    be read say nothing; None if that is all of them.
    """
    shares = []
    for verdicts in zip(*repeats, strict=True):
        known = [verdict for verdict in verdicts if verdict is not None]
        if len(known) > 1:
            pairs = list(combinations(known, 2))
            shares.append(sum(a == b for a, b in pairs) / len(pairs))
    return bootstrap_interval(shares) if shares else None


@dataclass(frozen=True, slots=True)
class PositionBias:
    """``consistent``: the same answer is preferred in both orders, or neither is. ``first``: of
    all single preferences, those for the answer that came first; one half is fair."""

    consistent: Interval
    first: Interval | None


def position_bias(forth: Verdicts, back: Verdicts) -> PositionBias | None:
    """What the order of two answers does to a preference, which is 1 for the answer that came
    first, 0 for the second and 0.5 for neither, in both orders (``forth`` and ``back``, a pair
    each). None if none can be read. ValueError if there are not as many of both."""
    read = [(a, b) for a, b in zip(forth, back, strict=True) if a is not None and b is not None]
    if not read:
        return None
    single = [score for pair in read for score in pair if score != NEITHER]
    return PositionBias(
        consistent=wilson_interval(sum(a + b == 1 for a, b in read), len(read)),
        first=wilson_interval(single.count(1), len(single)) if single else None,
    )


@dataclass(frozen=True, slots=True)
class LengthBias:
    """``slope``: by how much a verdict rises where an answer is twice as long, other things equal;
    0 is fair, and an interval that holds it shows no bias. ``compared`` verdicts, in groups."""

    slope: Interval
    compared: int
    groups: int


def length_bias(
    answers: Sequence[str], verdicts: Verdicts, groups: Sequence[object] | None = None
) -> LengthBias | None:
    """Whether longer answers get higher verdicts.

    Good answers may be longer for good reason, so verdicts are compared within ``groups`` alone:
    give the score by rule, or what people said, or the question where several methods answer it. A
    preference between two answers is 1 for one and 0 for the other, in a group of their own.
    Lengths are in words. None if in no group the length differs, and where all verdicts are the
    same. ValueError if the lists differ in length.
    """
    given = groups if groups is not None else [None] * len(answers)
    by_group: dict[object, list[tuple[float, float]]] = {}
    for answer, verdict, group in zip(answers, verdicts, given, strict=True):
        if verdict is not None:
            words = max(1, len(answer.split()))
            by_group.setdefault(group, []).append((float(np.log2(words)), verdict))
    centred = []
    for rows in by_group.values():
        table = np.array(rows)
        if np.ptp(table[:, 0]) > 0:
            centred.append(table - table.mean(axis=0))
    if not centred or len({*verdicts} - {None}) == 1:
        return None
    length, score = np.concatenate(centred).T
    slope = resample_interval(partial(_slope, length, score), len(length))
    return LengthBias(slope, len(length), len(centred))


def _slope(
    length: NDArray[np.float64], score: NDArray[np.float64], drawn: NDArray[np.int64]
) -> float:
    spread = float((length[drawn] ** 2).sum())
    return float((length[drawn] * score[drawn]).sum()) / spread if spread else 0.0


def _kappa(left: NDArray[np.float64], right: NDArray[np.float64]) -> Interval | None:
    if not np.isin([left, right], (0.0, 1.0)).all():
        return None
    if len({*left.tolist(), *right.tolist()}) == 1:
        return None
    return resample_interval(partial(_cohen_kappa, left, right), len(left))


def _cohen_kappa(
    left: NDArray[np.float64], right: NDArray[np.float64], drawn: NDArray[np.int64]
) -> float:
    """Cohen's kappa of a resample; 1 if both sides say one thing throughout, which is agreement."""
    one, other = left[drawn], right[drawn]
    seen = float((one == other).mean())
    luck = float(one.mean() * other.mean() + (1 - one.mean()) * (1 - other.mean()))
    return (seen - luck) / (1 - luck) if luck < 1 else 1.0
