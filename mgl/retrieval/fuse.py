"""Reciprocal rank fusion: several orders of the same items made into one.

Source: Cormack, Clarke and Büttcher, SIGIR 2009: score(d) = Σ 1 / (k + rank(d)), ranks from 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["reciprocal_rank_fusion"]


def reciprocal_rank_fusion(rankings: Sequence[ArrayLike], *, k: int = 60) -> NDArray[np.float64]:
    """Fused scores of n items from several score lists over the same n items, higher is better.

    Ties within a list are broken by position.
    """
    lists = [np.asarray(scores, dtype=np.float64) for scores in rankings]
    fused = np.zeros(len(lists[0]) if lists else 0)
    for scores in lists:
        ranks = np.empty(len(scores))
        ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
        fused += 1.0 / (k + ranks)
    return fused
