"""How like a query texts are by their vectors, and which are most so."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder

__all__ = ["likeness", "nearest"]


async def likeness(
    embedder: Embedder, query: str, texts: Sequence[str], *, passage: bool = False
) -> NDArray[np.float32]:
    """Cosine of a query with each text; with ``passage`` the query is a text like them."""
    if not texts:
        return np.zeros(0, dtype=np.float32)

    def work() -> NDArray[np.float32]:
        asked = embedder.embed([query], task="passage" if passage else "query")[0]
        cosines: NDArray[np.float32] = embedder.embed(texts) @ asked
        return cosines

    return await asyncio.to_thread(work)


async def nearest(
    embedder: Embedder, query: str, texts: Mapping[str, str], k: int, *, passage: bool = False
) -> list[tuple[str, float]]:
    """The ids of the ``k`` texts most like the query with their cosine, the best first."""
    names = list(texts)
    scores = await likeness(embedder, query, list(texts.values()), passage=passage)
    best = np.argsort(-scores, kind="stable")[:k]
    return [(names[place], float(scores[place])) for place in best]
