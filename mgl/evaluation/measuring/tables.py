"""Figures as a line of a table: scores by LoCoMo's categories, shares, what a run cost.

    >>> by_category([("multi-hop", 1.0), ("single-hop", 0.0), ("single-hop", 1.0)])
    '0.667 [0.000, 1.000] (n = 3) | 1.000 | – | – | 0.500'
    >>> percent(Interval(0.75, 0.301, 0.954, 4))
    '75.0% [30.1%, 95.4%] (n = 4)'

Intervals of means are bootstrapped, those of shares Wilson's (``mgl.evaluation.intervals``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Final

from mgl.benchmarks.locomo import ASKED, CATEGORIES
from mgl.evaluation.intervals import Interval, bootstrap_interval
from mgl.types import StageUsage

__all__ = ["CATEGORY_HEAD", "by_category", "differences", "percent", "quantity"]

_CATEGORIES: Final = tuple(CATEGORIES[number] for number in ASKED)
CATEGORY_HEAD: Final = f"all | {' | '.join(_CATEGORIES)}"
NONE: Final = "–"


def by_category(scores: Sequence[tuple[str, float]], *, each: bool = False) -> str:
    """The mean of all (category, score) with its interval and n, then that of each category; with
    ``each`` its interval and n, too."""
    cells = [_mean([score for _, score in scores], whole=True)]
    for category in _CATEGORIES:
        cells.append(_mean([score for own, score in scores if own == category], whole=each))
    return " | ".join(cells)


def differences(scores: Mapping[str, Mapping[str, tuple[str, float]]], base: str) -> list[str]:
    """Rows of a table: each method's scores less those of ``base``, question by question.

    ``scores`` has for each method (category, score) by question. KeyError where the base lacks a
    question of another.
    """
    least = scores[base]
    lines = []
    for method, own in scores.items():
        if method != base:
            less = [(category, score - least[id][1]) for id, (category, score) in own.items()]
            lines.append(f"| {method} | {by_category(less, each=True)} |")
    return lines


def percent(interval: Interval | None) -> str:
    """A share with its interval and n; ``none`` where there is none."""
    if interval is None:
        return "none"
    return f"{interval.mean:.1%} [{interval.low:.1%}, {interval.high:.1%}] (n = {interval.n})"


def quantity(used: StageUsage) -> str:
    """Calls and tokens, as far as they were counted."""
    return (
        f"{used.calls} calls and {used.replayed} replayed, {used.input_tokens:,} tokens in, "
        f"{used.output_tokens:,} out"
    )


def _mean(values: Sequence[float], *, whole: bool) -> str:
    if not values:
        return NONE
    if not whole:
        return f"{fmean(values):.3f}"
    interval = bootstrap_interval(values)
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}] (n = {interval.n})"
