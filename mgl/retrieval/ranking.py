"""Orders of items by score: the best of them, and several orders fused into one.

Source of the fusion: Cormack, Clarke and Büttcher, Reciprocal Rank Fusion (SIGIR 2009):
score(d) = Σ 1 / (k + rank(d)), ranks from 1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.retrieval.base import Embedder, Hit, Ids

KeyT = TypeVar("KeyT")


def reciprocal_rank_fusion(rankings: Sequence[ArrayLike], *, k: int = 60) -> NDArray[np.float64]:
    """Fuse several score lists over the same n items; higher is better, before and after.

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
    """Fuse rankings, each best first, into one of everything that is in any of them.

    An item gets nothing from a ranking that lacks it. Ties are broken by id.
    """
    fused: dict[int, float] = {}
    for hits in rankings:
        for rank, hit in enumerate(hits, 1):
            fused[hit.id] = fused.get(hit.id, 0.0) + 1.0 / (k + rank)
    return [Hit(*item) for item in sorted(fused.items(), key=lambda item: (-item[1], item[0]))]


async def likeness(
    embedder: Embedder, query: str, texts: Sequence[str], *, passage: bool = False
) -> NDArray[np.float32]:
    """Cosine of a query with each text; with ``passage`` the query is a text like them."""
    if not texts:
        return np.zeros(0, dtype=np.float32)

    def compare() -> NDArray[np.float32]:
        vector = embedder.embed([query], task="passage" if passage else "query")[0]
        cosines: NDArray[np.float32] = embedder.embed(texts) @ vector
        return cosines

    return await asyncio.to_thread(compare)


async def nearest(
    embedder: Embedder, query: str, texts: Mapping[KeyT, str], k: int, *, passage: bool = False
) -> list[tuple[KeyT, float]]:
    """The keys of the ``k`` texts most like the query with their cosine, best first."""
    keys = list(texts)
    scores = await likeness(embedder, query, list(texts.values()), passage=passage)
    order = np.argsort(-scores, kind="stable")[:k]
    return [(keys[place], float(scores[place])) for place in order]


def best(scores: NDArray[np.floating[Any]], k: int) -> list[tuple[int, float]]:
    """The places and values of the ``k`` highest scores, highest first; ties by place."""
    places = np.arange(len(scores))
    if k < len(scores):
        places = np.sort(np.argpartition(-scores, k)[:k])
    order = places[np.argsort(-scores[places], kind="stable")]
    return [(int(place), float(scores[place])) for place in order]


def places_of(ordered: NDArray[np.int64], ids: Ids) -> NDArray[np.int64]:
    """The place of each id in an array of different ids in order, -1 where it is not there."""
    wanted = np.fromiter(ids, np.int64, len(ids))
    places = np.searchsorted(ordered, wanted)
    places[places == len(ordered)] = 0
    return np.where(ordered[places] == wanted, places, -1) if len(ordered) else places - 1


def scale(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale scores linearly to 0 to 1; all are 1 where they are equal."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    if low == high:
        return np.ones_like(scores)
    return np.asarray((scores - low) / (high - low), dtype=np.float32)
