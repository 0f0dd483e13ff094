"""Intervals of means and shares, and paired tests of whether two methods differ.

    >>> interval = wilson_interval(3, 4)
    >>> f"{interval.low:.2f} to {interval.high:.2f}"
    '0.30 to 0.95'
    >>> compare_pairs([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0], "share").p
    0.0625
    >>> [round(p, 2) for p in correct_holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]

Shares are compared by McNemar's exact test on the items that only one method has right, means by
flipping the signs of the differences: all flips if they are few, else a sample. Holm's correction
keeps the chance of one false alarm among several comparisons at the level of each. Wilson's
interval, the exact test and the permutations are scipy's (extra ``evaluation``); scipy has no Holm,
and its bootstrap is not seeded by value, so both are written out here.

Items count as independent: that the questions of one conversation hang together is not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgl.errors import UsageError

__all__ = [
    "Indices",
    "Interval",
    "Paired",
    "bootstrap_interval",
    "compare_pairs",
    "correct_holm",
    "resample_interval",
    "wilson_interval",
]

Indices = NDArray[np.int64]
_RESAMPLES = 9_999
_BATCH = 500
_VALUES_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over ``n`` items, and where it lies at the level asked for."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Paired:
    """``difference`` is the mean of one minus the other, item by item, with its bootstrap interval;
    ``p`` is two-sided, by ``test``."""

    difference: Interval
    p: float
    test: Literal["mcnemar", "sign_flip"]


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """Return a share of ``n`` items with Wilson's score interval (JASA 1927).

    ValueError if there are no items, or fewer than successes.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes of {n} items are not a share")
    found = _scipy_stats().binomtest(successes, n).proportion_ci(level, method="wilson")
    share = successes / n
    return Interval(share, min(float(found.low), share), max(float(found.high), share), n)


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Return the mean with percentiles over resamples; the same values give the same interval.

    ValueError if there are no values, or infinite ones.
    """
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise ValueError("an interval needs a list of finite values")
    random = np.random.default_rng(seed)
    at_once = max(1, _VALUES_AT_ONCE // numbers.size)
    means = np.concatenate(
        [
            random.choice(numbers, (min(at_once, resamples - done), numbers.size)).mean(axis=1)
            for done in range(0, resamples, at_once)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(numbers.mean()), float(low), float(high), int(numbers.size))


def resample_interval(
    statistic: Callable[[Indices], float],
    n: int,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """Return any statistic of ``n`` items with its percentiles over resamples.

    ``statistic`` takes the indices of the items in a resample. ValueError if there are no items.
    """
    if n < 1:
        raise ValueError("an interval needs at least one item")
    random = np.random.default_rng(seed)
    values = [statistic(random.integers(0, n, n)) for _ in range(resamples)]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    whole = statistic(np.arange(n))
    return Interval(whole, min(float(low), whole), max(float(high), whole), n)


def compare_pairs(
    one: Sequence[float], other: Sequence[float], kind: Literal["share", "mean"], *, seed: int = 0
) -> Paired:
    """Compare two methods by their scores of the same items in the same order.

    The same scores and seed give the same result. ValueError if there are none, if the lists differ
    in length, or if a share has other values than 0 and 1; UsageError without scipy.
    """
    left, right = np.asarray(one, dtype=np.float64), np.asarray(other, dtype=np.float64)
    if left.shape != right.shape or left.ndim != 1 or not left.size:
        raise ValueError(f"{left.size} and {right.size} scores are not of the same items")
    difference = bootstrap_interval([float(value) for value in left - right], seed=seed)
    if kind == "share":
        if not set(np.concatenate([left, right]).tolist()) <= {0.0, 1.0}:
            raise ValueError("McNemar's test compares scores of 0 and 1")
        gained, lost = int((left > right).sum()), int((left < right).sum())
        return Paired(difference, _mcnemar(gained, lost), "mcnemar")
    return Paired(difference, _sign_flip(left - right, seed), "sign_flip")


def correct_holm(ps: Sequence[float]) -> list[float]:
    """Correct p-values for how many there are (Holm, Scand. J. Statistics 1979), in their order.

    ValueError for one that is not a probability.
    """
    if any(not 0 <= p <= 1 for p in ps):
        raise ValueError("a p-value lies between 0 and 1")
    corrected = [0.0] * len(ps)
    least = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=lambda each: ps[each])):
        least = max(least, min(1.0, (len(ps) - rank) * ps[place]))
        corrected[place] = least
    return corrected


def _mcnemar(gained: int, lost: int) -> float:
    """The chance of so uneven a split of the items that differ, were both sides as likely."""
    if gained + lost == 0:
        return 1.0
    return float(_scipy_stats().binomtest(gained, gained + lost).pvalue)


def _sign_flip(differences: NDArray[np.float64], seed: int) -> float:
    """The chance of so large a mean difference, were the sign of each item's random."""
    moved = differences[differences != 0]
    if moved.size < 2:  # one item that differs is as likely either way
        return 1.0
    found = _scipy_stats().permutation_test(
        (moved,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_RESAMPLES,
        batch=_BATCH,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _scipy_stats() -> Any:
    try:
        from scipy import stats
    except ImportError as error:
        raise UsageError(
            "comparing methods needs scipy", hint="python -m pip install 'mgl[evaluation]'"
        ) from error
    return stats
