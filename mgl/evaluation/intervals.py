"""How sure a mean or a share is, so that two methods are told apart by more than luck.

    >>> bootstrap_interval([1.0, 0.0, 1.0, 1.0]).mean
    0.75
    >>> interval = wilson_interval(3, 4)
    >>> f"{interval.low:.2f} to {interval.high:.2f}"
    '0.30 to 0.95'

To compare two methods on the same items, give the differences item by item: where the interval
holds 0, they cannot be told apart. Items are drawn independently; that the questions of one
conversation hang together is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

__all__ = ["Interval", "bootstrap_interval", "resampled_interval", "wilson_interval"]

_VALUES_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over ``n`` items, and where it lies with the probability that was asked for."""

    mean: float
    low: float
    high: float
    n: int


def bootstrap_interval(
    values: Sequence[float], *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """The mean with the percentiles of the means of samples drawn with replacement.

    The same values and seed give the same interval. ValueError where there are no values.
    """
    _check_level(level)
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size:
        raise ValueError("an interval needs a list of at least one value")
    if not np.isfinite(numbers).all():
        raise ValueError("an interval needs finite values")
    draw = np.random.default_rng(seed)
    at_once = max(1, _VALUES_AT_ONCE // numbers.size)
    means = np.concatenate(
        [
            draw.choice(numbers, (min(at_once, resamples - done), numbers.size)).mean(axis=1)
            for done in range(0, resamples, at_once)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(numbers.mean()), float(low), float(high), int(numbers.size))


def resampled_interval(
    statistic: Callable[[NDArray[np.int64]], float],
    n: int,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Interval:
    """Any statistic of ``n`` items, with the percentiles of what it is on samples of them.

    ``statistic`` is given the numbers of the items that were drawn, with replacement. ValueError
    where there are no items.
    """
    _check_level(level)
    if n < 1:
        raise ValueError("an interval needs at least one item")
    draw = np.random.default_rng(seed)
    values = [statistic(draw.integers(0, n, n)) for _ in range(resamples)]
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    whole = statistic(np.arange(n))
    return Interval(whole, min(float(low), whole), max(float(high), whole), n)


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """The share of ``n`` items with Wilson's score interval, which holds for few items too.

    Source: Wilson, Probable inference (JASA 1927). ValueError where there are no items, or fewer
    of them than successes.
    """
    _check_level(level)
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes of {n} items are no share")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    middle = share + z * z / (2 * n)
    spread = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    whole = 1 + z * z / n
    low, high = (middle - spread) / whole, (middle + spread) / whole
    return Interval(share, min(max(0.0, low), share), max(min(1.0, high), share), n)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, got {level}")
