"""Scores that many answers have together: pairs of claims, F1 over labels, masks of cloze tests.

    >>> AGGREGATES["pair_accuracy"].compute(answers).mean           # doctest: +SKIP
    0.25

A question that failed, or whose reply decides nothing, is among them as a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mgl.benchmarks.base import Item
from mgl.evaluation.intervals import Interval, resampled_interval
from mgl.evaluation.metrics.answered import Scored
from mgl.evaluation.metrics.choices import gold_label, label_said
from mgl.evaluation.metrics.claims import JudgedClaim, claim_scores, verdict
from mgl.evaluation.metrics.cloze import filled, matched

__all__ = ["AGGREGATES", "Aggregate"]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """``compute`` is over all items of a method; None where none of them has such a score."""

    name: str
    compute: Callable[[Sequence[Scored]], Interval | None]
    about: str


def _pairs(answers: Sequence[Scored]) -> Interval | None:
    judged = [
        JudgedClaim(each.item.pair, label, _said(each))
        for each in answers
        if each.item.pair and (label := _claim(each.item)) is not None
    ]
    return claim_scores(judged).pairs if judged else None


def _said(each: Scored) -> bool | None:
    return None if each.answered is None else verdict(each.answered.text)


def _claim(item: Item) -> bool | None:
    return verdict(item.golds[0]) if item.golds else None


def _macro_f1(answers: Sequence[Scored]) -> Interval | None:
    asked = [(gold, each) for each in answers if (gold := gold_label(each.item)) is not None]
    if not asked:
        return None
    numbers = {name: number for number, name in enumerate(sorted({gold for gold, _ in asked}))}
    right = np.array([numbers[gold] for gold, _ in asked])
    given = np.array([numbers.get(_label(each) or "", -1) for _, each in asked])
    return resampled_interval(partial(_mean_f1, right, given, len(numbers)), len(asked))


def _label(each: Scored) -> str | None:
    return None if each.answered is None else label_said(each.answered.text, each.item.choices)


def _mean_f1(
    right: NDArray[np.int64], given: NDArray[np.int64], labels: int, drawn: NDArray[np.int64]
) -> float:
    """The mean F1 of the labels, of those items that were drawn; 0 for a label with none right."""
    own, other = right[drawn], given[drawn]
    wanted = np.bincount(own, minlength=labels)
    found = np.bincount(other[other >= 0], minlength=labels)
    hit = np.bincount(own[own == other], minlength=labels)
    return float(np.mean(2 * hit / np.maximum(wanted + found, 1)))


def _masks(answers: Sequence[Scored], *, partial: bool) -> Interval | None:
    """The share of the masks of all tests; the interval is of tests drawn anew."""
    told = [("" if each.answered is None else each.answered.text, each.item) for each in answers]
    tests = [
        matched(said, item.golds[0], partial=partial)
        for said, item in told
        if item.golds and filled(item.golds[0])
    ]
    if not tests:
        return None
    right, masks = np.array(tests, dtype=np.float64).T

    def share(drawn: NDArray[np.int64]) -> float:
        return float(right[drawn].sum() / masks[drawn].sum())

    return resampled_interval(share, len(tests))


_ALL: Final = (
    Aggregate("pair_accuracy", _pairs, "NoCha: pairs of which both claims are judged rightly"),
    Aggregate(
        "macro_f1", _macro_f1, "Prelude: the mean of the F1 of the labels that the golds have"
    ),
    Aggregate(
        "cloze_exact_match_loogle",
        partial(_masks, partial=False),
        "LooGLE: the share of all masks whose name is given word for word",
    ),
    Aggregate(
        "cloze_partial_match_loogle",
        partial(_masks, partial=True),
        "LooGLE: the share of all masks of whose name a word is given",
    ),
)

AGGREGATES: Final[Mapping[str, Aggregate]] = MappingProxyType({each.name: each for each in _ALL})
