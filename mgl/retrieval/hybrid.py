"""Search by meaning and by words, fused by their ranks.

    >>> hybrid = Hybrid(vectors, texts)                              # doctest: +SKIP
    >>> hybrid.search("Who lost the ring?", embedder.embed(["Who lost the ring?"])[0], 10)
    [Hit(id=20, score=0.0327...), ...]

Source of the fusion: ``mgl.retrieval.fuse``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Hit
from mgl.retrieval.fuse import fuse_hits
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.vectors import Ids, VectorIndex, id_set

__all__ = ["Hybrid"]


@dataclass(frozen=True, slots=True)
class Hybrid:
    """A vector index and a lexical one over the same ids.

    ``depth`` is how many hits of each are fused, ``k`` the constant of the fusion.
    """

    vectors: VectorIndex
    texts: LexicalIndex
    depth: int = 100
    k: int = 60

    def search(
        self, query: str, vector: NDArray[np.float32], count: int, among: Ids | None = None
    ) -> list[Hit]:
        """The best ids by both, best first; ``vector`` is the query's, shape (dims,).

        ``among`` names the ids that may be found.
        """
        allowed = None if among is None else id_set(among)
        depth = max(self.depth, count)
        dense = self.vectors.search(vector[None], depth, allowed)[0]
        return fuse_hits([dense, self.texts.search(query, depth, allowed)], k=self.k)[:count]
