"""Candidates among very many vectors: FAISS's inverted file (IVF) over codes of one byte a number.

    cells = Cells.train(sample, math.isqrt(len(vectors)))
    cells.add(ids, vectors)
    cells.find(query, 100)                  # ids, to be compared exactly by who has the vectors

The vectors are divided into cells by k-means (spherical), and the cells nearest to a query are
searched (Sivic and Zisserman, Video Google, ICCV 2003; Johnson et al., Billion-scale similarity
search with GPUs, 2017). Scores of codes are near those of the vectors and no more, so more
candidates are found than are wanted.
"""

from __future__ import annotations

import math
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

PROBED: Final = 384
"""Cells that are searched, of a thousand for a million vectors."""
FILTERED: Final = 256
"""Cells that are searched through a filter, divided by the root of the share that it leaves."""
DENSE: Final = 0.25
"""The share from which on a filter is applied to what is found: FAISS tests ids one by one."""
SAMPLED: Final = 40
"""Vectors for each cell that k-means is given: about FAISS's least; more find nothing more."""
_ROUNDS: Final = 8


class Cells:
    """An inverted file of unit vectors by ids from 0, each of which it holds once. Not
    thread-safe."""

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
        """Add vectors under ids that it does not hold."""
        import_faiss()
        if len(ids):
            self._highest = max(self._highest, int(ids.max()))
            self._index.add_with_ids(np.ascontiguousarray(vectors), ids)

    def remove(self, ids: NDArray[np.int64]) -> None:
        """Remove vectors; ids that it does not hold are passed over."""
        if len(ids):
            self._index.remove_ids(import_faiss().IDSelectorBatch(ids))

    def find(
        self, vector: NDArray[np.float32], count: int, among: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Find ``count`` ids, or fewer, whose vectors are most like a query; ``among`` names the
        ids that may be found."""
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
    """Import FAISS, held to one thread: reading memory takes the time, so a second gains little,
    and on a busy machine waiting for it takes many times as long as the search itself."""
    import faiss

    faiss.omp_set_num_threads(1)  # of the thread that calls
    return faiss
