"""What finds near rows among many without looking at all of them: FAISS' HNSW and IVF.

A structure holds the rows in 8 bits a dimension and proposes candidates; whoever asks scores them
by the rows themselves, which brings back what the 8 bits lost. How hard it looks (IVF: lists,
HNSW: candidates kept) is chosen when it is built: the least effort that finds ``RECALL`` of the
ten nearest rows of a sample, by comparison with all of them. The sample lies between rows, since
questions are no rows: on turns and questions of LoCoMo (all-MiniLM-L6-v2) what is found of it and
of real questions differs by 0.04 at most, and by 0.01 from 0.98 on, while HNSW finds the rows
themselves too easily.

It does not know ids or removed rows: positions, and a mask of those that may be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from mgl.errors import StoreError, UsageError
from mgl.retrieval.rows import best

__all__ = ["RECALL", "Structure", "StructureKind"]

StructureKind = Literal["hnsw", "ivf"]

RECALL: Final = 0.985
"""The share of the ten nearest rows that a structure has to find of its own sample."""

_SAMPLE: Final = 200
_SHARE_OF_OTHER: Final = np.float32(0.7)
_NEAREST: Final = 10
_LINKS: Final = 16
_BUILD_EFFORT: Final = 80
_ROWS_A_LIST: Final = 40
_ROUNDS: Final = 8
_BLOCK: Final = 65_536


@dataclass(frozen=True, slots=True)
class Structure:
    """An index of FAISS over rows that do not change.

    ``effort`` is how hard it looks, ``recall`` what that found of the sample (0 to 1).
    """

    kind: StructureKind
    index: Any
    effort: int
    recall: float

    @classmethod
    def build(cls, kind: StructureKind, rows: NDArray[np.float32]) -> Structure:
        """Build over these rows (at least 40); takes minutes for a million."""
        index = _ivf(rows) if kind == "ivf" else _hnsw(rows)
        queries = _sample(rows)
        nearest = _nearest(queries, rows)
        for effort in _efforts(kind, index):
            built = cls(kind, index, effort, 0.0)
            recall = built._recall(queries, rows, nearest)
            if recall >= RECALL:
                break
        return cls(kind, index, effort, recall)

    def candidates(
        self, queries: NDArray[np.float32], count: int, allowed: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Positions that may be the nearest of each query: shape (queries, …), -1 for none.

        More than ``count`` are given, since their order is by 8 bits. ``allowed`` marks the
        positions that may be given; the fewer they are, the harder it looks.
        """
        faiss = require_faiss()
        wanted = min(2 * count + 40, self.index.ntotal)
        effort = self.effort
        selector = None
        if allowed is not None:
            effort = int(effort / max(float(allowed.mean()), 1e-9))
            bits = np.packbits(allowed, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
        if self.kind == "ivf":
            parameters = faiss.SearchParametersIVF(
                nprobe=min(effort, self.index.nlist), sel=selector
            )
        else:
            parameters = faiss.SearchParametersHNSW(
                efSearch=min(max(effort, wanted), self.index.ntotal), sel=selector
            )
        _, found = self.index.search(queries, wanted, params=parameters)
        positions: NDArray[np.int64] = found
        return positions

    def save(self, path: Path) -> None:
        require_faiss().write_index(self.index, str(path))

    @classmethod
    def open(cls, path: Path, kind: StructureKind, effort: int, recall: float) -> Structure:
        """Map what ``save`` wrote; StoreError where it is damaged."""
        faiss = require_faiss()
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP_IFC)
        except RuntimeError as error:
            raise StoreError(
                f"{path} is no index that FAISS can read",
                hint="remove the folder that holds it, and index the texts again",
            ) from error
        return cls(kind, index, effort, recall)

    def _recall(
        self, queries: NDArray[np.float32], rows: NDArray[np.float32], nearest: NDArray[np.int64]
    ) -> float:
        count = nearest.shape[1]
        found = 0
        for query, positions, right in zip(
            queries, self.candidates(queries, count), nearest, strict=True
        ):
            given = positions[positions >= 0]
            _, places = best((rows[given] @ query)[None], count)
            found += len(np.intersect1d(given[places[0]], right))
        return found / nearest.size


def require_faiss() -> Any:
    """The module faiss; UsageError where it is not installed."""
    try:
        import faiss
    except ImportError as error:
        raise UsageError(
            "an index over that many vectors needs faiss, which is not installed",
            hint="pip install 'mgl[retrieval]'",
        ) from error
    return faiss


def _ivf(rows: NDArray[np.float32]) -> Any:
    """Inverted lists around spherical k-means centres, about 2 √n of them."""
    faiss = require_faiss()
    dims = rows.shape[1]
    lists = max(1, min(2 ** round(np.log2(2 * np.sqrt(len(rows)))), len(rows) // _ROWS_A_LIST))
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dims),
        dims,
        lists,
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
        False,
    )
    index.cp.spherical = True
    index.cp.niter = _ROUNDS
    index.cp.min_points_per_centroid = 1
    index.cp.max_points_per_centroid = _ROWS_A_LIST
    _train(index, rows, lists * _ROWS_A_LIST)
    _fill(index, rows)
    return index


def _hnsw(rows: NDArray[np.float32]) -> Any:
    """Hierarchical navigable small worlds of 16 links a row."""
    faiss = require_faiss()
    index = faiss.IndexHNSWSQ(
        rows.shape[1], faiss.ScalarQuantizer.QT_8bit, _LINKS, faiss.METRIC_INNER_PRODUCT
    )
    index.hnsw.efConstruction = _BUILD_EFFORT
    _train(index, rows, _BLOCK)
    _fill(index, rows)
    return index


def _train(index: Any, rows: NDArray[np.float32], wanted: int) -> None:
    chosen = np.random.default_rng(0).choice(len(rows), size=min(wanted, len(rows)), replace=False)
    index.train(np.ascontiguousarray(rows[np.sort(chosen)]))


def _fill(index: Any, rows: NDArray[np.float32]) -> None:
    for _, block in _blocks(rows):
        index.add(block)


def _sample(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Directions between two rows each, nearer to the first."""
    pairs = np.random.default_rng(0).integers(len(rows), size=(2, _SAMPLE))
    mixed = rows[pairs[0]] + _SHARE_OF_OTHER * rows[pairs[1]]
    sample: NDArray[np.float32] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    return sample


def _nearest(queries: NDArray[np.float32], rows: NDArray[np.float32]) -> NDArray[np.int64]:
    scores = np.empty((len(queries), 0), np.float32)
    places = np.empty((len(queries), 0), np.int64)
    for start, block in _blocks(rows):
        here, at = best(queries @ block.T, _NEAREST)
        scores, order = best(np.concatenate([scores, here], axis=1), _NEAREST)
        both = np.concatenate([places, at + start], axis=1)
        places = np.take_along_axis(both, order, axis=1)
    return places


def _blocks(rows: NDArray[np.float32]) -> Iterator[tuple[int, NDArray[np.float32]]]:
    for start in range(0, len(rows), _BLOCK):
        yield start, np.ascontiguousarray(rows[start : start + _BLOCK])


def _efforts(kind: StructureKind, index: Any) -> Iterator[int]:
    """Ever larger efforts, each a quarter above the last, up to the greatest."""
    greatest = index.nlist if kind == "ivf" else index.ntotal
    effort = 1.0 if kind == "ivf" else 16.0
    while effort < greatest:
        yield int(effort)
        effort = max(effort * 1.25, effort + 1)
    yield greatest
