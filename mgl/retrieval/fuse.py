"""Reciprocal rank fusion: several orders of the same items made into one.

Source: Cormack, Clarke and Büttcher, SIGIR 2009: score(d) = Σ 1 / (k + rank(d)), ranks from 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.retrieval.base import Hit

__all__ = ["fuse_hits", "reciprocal_rank_fusion"]


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


def fuse_hits(rankings: Sequence[Sequence[Hit]], *, k: int = 60) -> list[Hit]:
    """One ranking of everything in several, each best first; an item that one lacks gets nothing
    from it. Ties are broken by id."""
    fused: dict[int, float] = {}
    for hits in rankings:
        for rank, hit in enumerate(hits, 1):
            fused[hit.id] = fused.get(hit.id, 0.0) + 1.0 / (k + rank)
    return [Hit(*item) for item in sorted(fused.items(), key=lambda item: (-item[1], item[0]))]
