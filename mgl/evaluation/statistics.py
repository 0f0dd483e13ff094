"""Intervals of means and shares, and paired tests of whether two methods differ.

    >>> interval = mean_interval([1, 1, 1, 0])
    >>> f"{interval.low:.2f} to {interval.high:.2f}"
    '0.30 to 0.95'
    >>> compare_pairs([1, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 0]).p
    0.0625

Questions about one conversation or book are correlated, so with four sources or more, each source
is a cluster: intervals and tests are cluster-robust, by the t distribution with one degree of
freedom fewer than sources (Liang and Zeger, Biometrika 1986), and resampling draws whole sources.
With fewer sources, or one question each, items count as independent: the figures then describe
these sources alone.

The numbers are scipy's and statsmodels' (extra ``evaluation``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mgl.errors import UsageError, install_hint

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]

FEWEST_SOURCES: Final = 4
LEVEL: Final = 0.95
_FLIPS: Final = 9_999
_NOTHING: Final = 1e-12  # what rounding leaves of a difference
_RESAMPLES: Final = 2_000
_MOST_FLIPPED: Final = 1_000  # differences; of more the mean is normal enough for t


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over ``n`` items, and where it lies at the level asked for."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class Paired:
    """``difference`` is the mean of one minus the other, item by item; ``p`` is two-sided, by
    ``test``."""

    difference: Interval
    p: float
    test: str


def are_clusters(sources: Sequence[str]) -> bool:
    """Whether there are enough sources to stand for others, and several items of some."""
    return FEWEST_SOURCES <= len(set(sources)) < len(sources)


def wilson_interval(successes: int, n: int) -> Interval:
    """Return a share of ``n`` items with Wilson's score interval (JASA 1927).

    ValueError if there are no items, or fewer than successes.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes of {n} items are not a share")
    confint = _load("statsmodels.stats.proportion").proportion_confint
    low, high = confint(successes, n, alpha=1 - LEVEL, method="wilson")
    share = successes / n
    return Interval(share, min(max(0.0, float(low)), share), max(min(1.0, float(high)), share), n)


def mean_interval(
    values: Sequence[float],
    sources: Sequence[str] = (),
    parts: Sequence[str] = (),
) -> Interval:
    """Return a mean with its interval: Wilson's for shares of independent items, else by t.

    ``sources`` has each item's source. ``parts`` has each item's part, where the mean of the parts'
    means is wanted. If nothing varies the interval of anything but a share has no width. ValueError
    if there are no values, or infinite ones.
    """
    numbers = _read(values)
    is_share = bool(np.isin(numbers, (0.0, 1.0)).all()) and len(set(parts)) < 2
    fitted = None if is_share and not are_clusters(sources) else _fit(numbers, sources, parts)
    if is_share and (fitted is None or np.ptp(numbers) == 0):
        return wilson_interval(int(numbers.sum()), numbers.size)
    if fitted is None:
        return _without_width(numbers, parts)
    mean = float(fitted.effect[0] if parts else numbers.mean())
    low, high = map(float, fitted.conf_int(1 - LEVEL)[0])
    if numbers.min() >= 0 and numbers.max() <= 1:
        low, high = max(0.0, low), min(1.0, high)
    return Interval(mean, min(low, mean), max(high, mean), numbers.size)


def compare_pairs(
    one: Sequence[float], other: Sequence[float], sources: Sequence[str] = ()
) -> Paired:
    """Compare two methods by their scores of the same items in the same order.

    By a cluster-robust t test over the sources, or by flipping the signs of their sums if these do
    not vary; of independent items shares by McNemar's exact test, and means by flipping the signs
    of the differences. ValueError if there are none or the lists differ in length.
    """
    left, right = _read(one), _read(other)
    if left.shape != right.shape:
        raise ValueError(f"{left.size} and {right.size} scores are not of the same items")
    fitted = _fit(left - right, sources)
    mean = float((left - right).mean())
    low, high = (mean, mean) if fitted is None else map(float, fitted.conf_int(1 - LEVEL)[0])
    both = np.concatenate([left, right])
    if both.min() >= 0 and both.max() <= 1:
        low, high = max(-1.0, low), min(1.0, high)
    difference = Interval(mean, low, high, left.size)
    if are_clusters(sources):
        over = f"over {len(set(sources))} sources"
        if fitted is not None and fitted.sd.item() > _NOTHING:
            return Paired(difference, float(fitted.pvalue), f"cluster-robust t test {over}")
        moved = left - right
        sums = np.array([moved[_of(sources, one)].sum() for one in dict.fromkeys(sources)])
        return Paired(difference, _sign_flip(sums), f"sign-flip permutation test {over}")
    if np.isin([left, right], (0.0, 1.0)).all():
        table = [[0, int((left > right).sum())], [int((left < right).sum()), 0]]
        found = _load("statsmodels.stats.contingency_tables").mcnemar(table, exact=True)
        return Paired(difference, float(found.pvalue), "McNemar's exact test")
    if fitted is not None and left.size > _MOST_FLIPPED:
        return Paired(difference, float(fitted.pvalue), "t test")
    return Paired(difference, _sign_flip(left - right), "sign-flip permutation test")


def correct_holm(ps: Sequence[float]) -> list[float]:
    """Correct p-values for how many there are (Holm, Scand. J. Statistics 1979), in their order."""
    if not ps:
        return []
    corrected = _load("statsmodels.stats.multitest").multipletests(ps, method="holm")[1]
    return [float(p) for p in corrected]


def resample_interval(
    statistic: Callable[[Indices], float],
    n: int,
    sources: Sequence[str] = (),
) -> Interval:
    """Return any statistic of ``n`` items with its interval over resamples.

    ``statistic`` takes the indices of the items in a resample. Of independent items the interval is
    the percentiles; of clusters whole sources are drawn, and it is the standard error of the
    resamples times t, since percentiles of few clusters are too narrow. ValueError without items.
    """
    if n < 1:
        raise ValueError("an interval needs at least one item")
    random, whole = np.random.default_rng(0), statistic(np.arange(n))
    if not are_clusters(sources):
        drawn = [statistic(random.integers(0, n, n)) for _ in range(_RESAMPLES)]
        low, high = map(float, np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]))
        return Interval(whole, min(low, whole), max(high, whole), n)
    groups = [np.flatnonzero(_of(sources, source)) for source in dict.fromkeys(sources)]
    count = len(groups)
    drawn = [
        statistic(np.concatenate([groups[place] for place in random.integers(0, count, count)]))
        for _ in range(_RESAMPLES)
    ]
    t = float(_load("scipy.stats").t.ppf((1 + LEVEL) / 2, count - 1))
    reach = t * float(np.std(drawn, ddof=1)) * (count / (count - 1)) ** 0.5
    return Interval(whole, whole - reach, whole + reach, n)


def _read(values: Sequence[float]) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise ValueError("an interval needs a list of finite values")
    return numbers


def _without_width(numbers: Floats, parts: Sequence[str] = ()) -> Interval:
    means = [numbers[_of(parts, part)].mean() for part in dict.fromkeys(parts)]
    mean = float(np.mean(means or numbers))
    return Interval(mean, mean, mean, numbers.size)


def _of(names: Sequence[str], name: str) -> Any:
    return np.asarray(names) == name


def _fit(values: Floats, sources: Sequence[str], parts: Sequence[str] = ()) -> Any:
    """Estimate the mean of the parts' means by least squares, with sources as clusters; None if
    nothing varies within the parts."""
    names = list(dict.fromkeys(parts)) or [""]
    design = np.stack([_of(parts or [""] * values.size, name) for name in names], axis=1)
    design = design.astype(np.float64)
    left = values - design @ (design.T @ values / design.sum(axis=0))
    if values.size <= len(names) or not np.any(np.abs(left) > _NOTHING):
        return None
    model = _load("statsmodels.regression.linear_model").OLS(values, design)
    if are_clusters(sources):
        codes = np.unique(np.asarray(sources), return_inverse=True)[1]
        fitted = model.fit(cov_type="cluster", cov_kwds={"groups": codes}, use_t=True)
    else:
        fitted = model.fit(cov_type="HC1", use_t=True)
    return fitted.t_test(np.full((1, len(names)), 1 / len(names)))


def _sign_flip(differences: Floats) -> float:
    """The chance of so large a mean difference, were the sign of each item's random."""
    moved = differences[np.abs(differences) > _NOTHING]
    if moved.size < 2:  # one item that differs is as likely either way
        return 1.0
    found = _load("scipy.stats").permutation_test(
        (moved,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_FLIPS,
        batch=500,
        rng=np.random.default_rng(0),
    )
    return float(found.pvalue)


def _load(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(
            "comparing methods needs scipy and statsmodels",
            hint=install_hint("evaluation"),
        ) from error
