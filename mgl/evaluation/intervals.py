"""How sure a mean is: a bootstrap interval, so that two methods are told apart by more than luck.

    >>> bootstrap_interval([1.0, 0.0, 1.0, 1.0]).mean
    0.75

To compare two methods on the same items, give the differences item by item: where the interval
holds 0, they cannot be told apart. Items are drawn independently; that the questions of one
conversation hang together is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Interval", "bootstrap_interval"]

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
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, got {level}")
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
