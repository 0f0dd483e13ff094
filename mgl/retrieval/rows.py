"""Vectors with their ids, some of them removed: what is searched exactly, and grows.

Removed rows stay where they are, so that positions hold, until ``compacted`` leaves them out. The
exact search is one matrix product; it needs nothing but numpy.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rows", "best", "found_in"]

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_Kind = TypeVar("_Kind", bound=np.generic)

_FEW_QUERIES = 8
_ROWS_AT_ONCE = 256
"""For few queries. So small a product is computed by one thread: reading memory is what it takes,
so that a second thread gains little, and on a busy machine waiting for it takes far longer."""
_SCORES_AT_ONCE = 1 << 22
_GATHERED = 4
"""Rows are picked out to be compared where they are at most one in so many."""


class Rows:
    """Rows by position; ids are unique among the rows that live.

    ``vectors`` may be a memory map that cannot be written to: adding copies it.
    """

    def __init__(self, vectors: Floats, ids: Integers, alive: Booleans | None = None) -> None:
        self._vectors = vectors
        self._ids = ids
        self._alive = np.ones(len(ids), dtype=np.bool_) if alive is None else alive
        self._size = len(ids)
        self._living = int(self._alive.sum())
        self._sort()

    @classmethod
    def none(cls, dims: int) -> Rows:
        return cls(np.empty((0, dims), np.float32), np.empty(0, np.int64))

    def __len__(self) -> int:
        """How many rows there are, the removed ones included."""
        return self._size

    @property
    def living(self) -> int:
        return self._living

    @property
    def vectors(self) -> Floats:
        return self._vectors[: self._size]

    @property
    def ids(self) -> Integers:
        return self._ids[: self._size]

    @property
    def alive(self) -> Booleans:
        return self._alive[: self._size]

    def add(self, vectors: Floats, ids: Integers) -> None:
        """Append rows; the caller has seen to it that none of the ids lives."""
        needed = self._size + len(ids)
        if needed > len(self._ids):
            room = max(needed, 2 * self._size, 64)
            self._vectors = _larger(self.vectors, room)
            self._ids = _larger(self.ids, room)
            self._alive = _larger(self.alive, room)
        self._vectors[self._size : needed] = vectors
        self._ids[self._size : needed] = ids
        self._alive[self._size : needed] = True
        self._size = needed
        self._living += len(ids)
        self._sort()

    def remove(self, positions: Integers) -> None:
        """Let the rows at these positions, which all live, be dead."""
        self._alive[positions] = False
        self._living -= len(positions)
        self._sort()

    def find(self, ids: Integers) -> Integers:
        """The position of each id, -1 where no living row has it."""
        places = found_in(self._sorted, ids)
        return np.where(places >= 0, self._order[places], -1) if self._living else places

    def compacted(self, other: Rows) -> Rows:
        """The living rows of this one and, behind them, of the other."""
        return Rows(
            np.concatenate([self.vectors[self.alive], other.vectors[other.alive]]),
            np.concatenate([self.ids[self.alive], other.ids[other.alive]]),
        )

    def nearest(
        self, queries: Floats, count: int, among: Integers | None = None
    ) -> tuple[Floats, Integers]:
        """Inner products and positions of the best living rows of each query, best first.

        ``among`` names the positions that may be found, all of which live. Both arrays have the
        shape (queries, found); where fewer rows than ``count`` may be found, some score -inf.
        """
        if among is not None and _GATHERED * len(among) <= self._size:
            scores, places = best(self._scores(queries, among), count)
            return scores, among[places]
        products = self._scores(queries, None)
        hidden = ~self.alive
        if among is not None:
            hidden[:] = True
            hidden[among] = False
        products[:, hidden] = -np.inf
        return best(products, count)

    def _scores(self, queries: Floats, among: Integers | None) -> Floats:
        size = self._size if among is None else len(among)
        few = len(queries) <= _FEW_QUERIES
        step = _ROWS_AT_ONCE if few else max(1, _SCORES_AT_ONCE // len(queries))
        scores = np.empty((len(queries), size), dtype=np.float32)
        for start in range(0, size, step):
            end = min(size, start + step)
            part = self.vectors[start:end] if among is None else self._vectors[among[start:end]]
            scores[:, start:end] = (part @ queries.T).T
        return scores

    def _sort(self) -> None:
        living = np.flatnonzero(self.alive)
        ids = self.ids[living]
        order = np.argsort(ids, kind="stable")
        self._order: Integers = living[order]
        self._sorted: Integers = ids[order]


def best(scores: Floats, count: int) -> tuple[Floats, Integers]:
    """The ``count`` highest values of each line and their places, highest first; ties by place."""
    count = min(count, scores.shape[1])
    if count < scores.shape[1]:
        places = np.argpartition(-scores, count, axis=1)[:, :count]
        places.sort(axis=1)
    else:
        places = np.broadcast_to(np.arange(count), scores.shape)
    taken = np.take_along_axis(scores, places, axis=1)
    order = np.argsort(-taken, axis=1, kind="stable")
    return (
        np.take_along_axis(taken, order, axis=1),
        np.take_along_axis(places, order, axis=1).astype(np.int64, copy=False),
    )


def found_in(ordered: Integers, ids: Integers) -> Integers:
    """The place of each id in an array of different ids in order, -1 where it is not there."""
    if not len(ordered):
        return np.full(len(ids), -1, dtype=np.int64)
    places = np.searchsorted(ordered, ids)
    places[places == len(ordered)] = 0
    return np.where(ordered[places] == ids, places, -1)


def _larger(array: NDArray[_Kind], room: int) -> NDArray[_Kind]:
    grown = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
