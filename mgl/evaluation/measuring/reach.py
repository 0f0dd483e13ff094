"""How much of a graph selections reach: one that reaches most of it selects nothing.

>>> reach_lines([0.05, 0.4, 1.0])[0]
'share of entities reached: mean 0.483, median 0.400'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean, median

from mgl.evaluation.intervals import wilson_interval
from mgl.evaluation.measuring.tables import percent

__all__ = ["reach_lines"]


def reach_lines(shares: Sequence[float]) -> list[str]:
    """The distribution of shares, one a question, 0 to 1, and how many questions reach nothing,
    more than half and all. ValueError where there are none."""
    if not shares:
        raise ValueError("there is no question")
    tenths = Counter(min(9, int(share * 10)) for share in shares)
    counts = {
        "nothing": sum(share == 0 for share in shares),
        "more than half": sum(share > 0.5 for share in shares),
        "all": sum(share == 1 for share in shares),
    }
    return [
        f"share of entities reached: mean {fmean(shares):.3f}, median {median(shares):.3f}",
        *(f"  {n / 10:.1f} to {(n + 1) / 10:.1f}: {tenths[n]} questions" for n in range(10)),
        *(
            f"questions that reach {name}: {percent(wilson_interval(count, len(shares)))}"
            for name, count in counts.items()
        ),
    ]
