"""Whether two methods differ by more than luck, on the same items.

    >>> paired([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0], "share").p
    0.0625
    >>> [round(p, 2) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]

Shares are compared by McNemar's exact test, which counts the items that only one of the two has
right; means by flipping the signs of the differences, all of them where they are few, else as many
as drawn. Where one report makes several comparisons, Holm's correction keeps the chance of one
false alarm among all at the level of each. Sources: McNemar (Psychometrika 1947); Holm (Scand. J.
Statistics 1979). Items are taken to be independent; the questions of one source are not quite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mgl.errors import UsageError
from mgl.evaluation.intervals import Interval, bootstrap_interval

__all__ = ["Paired", "holm", "paired"]

RESAMPLES = 9_999
_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Paired:
    """``difference`` is the mean of one minus the other, item by item, with its bootstrap interval;
    ``p`` is two-sided, by ``test``."""

    difference: Interval
    p: float
    test: Literal["mcnemar", "sign_flip"]


def paired(
    one: Sequence[float], other: Sequence[float], kind: Literal["share", "mean"], *, seed: int = 0
) -> Paired:
    """Compare two methods by their scores of the same items in the same order.

    The same scores and seed give the same result. ValueError where there are none, or not as many
    of both, or where a share has other values than 0 and 1; UsageError without the extra
    ``evaluation``.
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


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values corrected for how many there are, in the order given.

    ValueError for one that is no probability.
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
    return float(_stats().binomtest(gained, gained + lost).pvalue)


def _sign_flip(differences: NDArray[np.float64], seed: int) -> float:
    """The chance of so large a mean difference, were the sign of each item's left to luck."""
    moved = differences[differences != 0]
    if moved.size < 2:  # one item that differs is as likely either way
        return 1.0
    found = _stats().permutation_test(
        (moved,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=_AT_ONCE,
        rng=np.random.default_rng(seed),
    )
    return float(found.pvalue)


def _stats() -> Any:
    try:
        from scipy import stats
    except ImportError as error:
        raise UsageError(
            "comparing methods needs scipy", hint="python -m pip install 'mgl[evaluation]'"
        ) from error
    return stats
