"""Candidates among very many vectors: FAISS's inverted file (IVF) over codes of one byte a number.

    cells = Cells.train(sample, math.isqrt(len(vectors)))
    cells.add(ids, vectors)
    cells.find(query, 100)                  # candidates, for the caller to compare exactly

The vectors are divided into cells by k-means (spherical), and the cells nearest to a query are
searched (Sivic and Zisserman, Video Google, ICCV 2003; Johnson et al., Billion-scale similarity
search with GPUs, 2017). Scores of codes are approximate, so
callers ask for more candidates than they need.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

PROBED: Final = 384
"""Cells searched for a query; a million vectors have a thousand cells."""
FILTERED: Final = 256
"""Cells searched through a filter, before division by the root of the share that it leaves."""
DENSE: Final = 0.25
"""A filter that leaves this share or more is applied after the search: FAISS tests each id."""
SAMPLED: Final = 40
"""Vectors per cell that k-means is trained on: about FAISS's minimum; more do not find more."""
_ROUNDS: Final = 8


class Cells:
    """An inverted file of unit vectors under ids from 0, one vector an id. Not thread-safe."""

    def __init__(self, index: Any) -> None:
        self._index = index
        self._highest = -1

    @classmethod
    def train(cls, sample: NDArray[np.float32], count: int) -> Self:
        """Divide the space into ``count`` cells by a sample of vectors; none is added."""
        faiss = import_faiss()
        dims = sample.shape[1]
        index = faiss.IndexIVFScalarQuantizer(
            faiss.IndexFlatIP(dims),
            dims,
            min(count, len(sample)),
            faiss.ScalarQuantizer.QT_8bit,
            faiss.METRIC_INNER_PRODUCT,
        )
        index.cp.spherical, index.cp.niter = True, _ROUNDS
        index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, SAMPLED
        index.train(np.ascontiguousarray(sample))
        return cls(index)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, ids: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Add vectors under new ids."""
        import_faiss()
        if len(ids):
            self._highest = max(self._highest, int(ids.max()))
            self._index.add_with_ids(np.ascontiguousarray(vectors), ids)

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Remove vectors; unknown ids are passed over."""
        if len(ids):
            self._index.remove_ids(import_faiss().IDSelectorBatch(ids))

    def find(
        self, vector: NDArray[np.float32], count: int, among: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Find at most ``count`` ids whose vectors are most like a query; ``among`` names the ids
        that may be found."""
        query = np.ascontiguousarray(vector, np.float32)[np.newaxis]
        if among is None:
            return self._search(query, count, PROBED)
        chosen = np.zeros(self._highest + 1, dtype=bool)
        chosen[among[(among >= 0) & (among <= self._highest)]] = True
        share = max(1, int(np.count_nonzero(chosen))) / max(1, len(self))
        if share >= DENSE:
            found = self._search(query, math.ceil(2 * count / share), PROBED)
            left = found[chosen[found]]
            if len(left) >= count / 2:
                return left[:count]
        bits = np.packbits(chosen, bitorder="little")
        selected = import_faiss().IDSelectorBitmap(bits)
        return self._search(query, count, math.ceil(FILTERED / share**0.5), sel=selected)

    def _search(
        self, query: NDArray[np.float32], count: int, probed: int, **settings: Any
    ) -> NDArray[np.int64]:
        faiss = import_faiss()
        wanted = faiss.SearchParametersIVF(nprobe=min(probed, self._index.nlist), **settings)
        _, found = self._index.search(query, count, params=wanted)
        ids: NDArray[np.int64] = found[0][found[0] >= 0]
        return ids


def import_faiss() -> Any:
    """Import FAISS, held to one thread: a search is bound by memory, so a second thread gains
    little, and on a busy machine waiting for it takes many times as long as the search itself."""
    import faiss

    faiss.omp_set_num_threads(1)  # of the thread that calls
    return faiss
