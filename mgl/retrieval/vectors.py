"""Texts found by their meaning: exact search over the vectors of an embedder.

    index = VectorIndex(embedder)
    index.extend({7: "Ann met Bo.", 9: "The ring was lost at sea."})
    index.search("Where is the ring?", 1)          # [Hit(id=9, score=0.61)]

Every vector is compared with the query, as one matrix product: about 20 ms for 100,000 vectors of
384 numbers on one core, with nothing to build and nothing to tune.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder, Hit, Ids
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.ranking import best, fuse_hits, places_of

if TYPE_CHECKING:
    from mgl.store import Store

__all__ = ["HybridIndex", "VectorIndex"]

_FEW: Final = 4
"""Vectors are picked out to be compared where at most one in so many may be found."""

_BLOCK: Final = 400_000
"""Numbers that are multiplied at once."""

Query = str | NDArray[np.float32]
"""A text, or its vector by ``embedder.embed([text], task="query")[0]``."""


class VectorIndex:
    """The vectors of texts by integer id, kept in a store under a name, or in memory without one.

        meaning = VectorIndex(embedder, store, f"{memory_id}/turns")
        meaning.extend({turn.number: turn.line})             # with each append; embeds, blocks
        meaning.search("Who lost the ring?", 10)             # with each question; blocks
        meaning.remove([turn.number])                        # with each deletion

    Used like ``LexicalIndex``: open it once, and extend it by what it lacks (``in``). It reads what
    is stored when first used (half a second for 100,000 texts). An index belongs to one embedder:
    opened with another one it is empty, and has to be extended anew. Scores are cosines, -1 to 1.

    The store keeps each text's vector once, in the cache that ``CachedEmbedder`` uses. ``remove``
    deletes a vector that no other index holds; to let a text go that is to be replaced, remove it
    first. Safe from several threads.
    """

    def __init__(self, embedder: Embedder, store: Store | None = None, name: str = "") -> None:
        self._embedder = embedder
        self._store = store
        self._name = f"{name}@{embedder.model_id}"
        self._version = 0
        self._lock = threading.RLock()
        self._slots: dict[int, int] = {}
        self._order: NDArray[np.int64] | None = None
        self._ids = np.empty(0, dtype=np.int64)
        self._vectors = np.empty((0, embedder.dims), dtype=np.float32)

    def __len__(self) -> int:
        return len(self._current())

    def __contains__(self, identity: object) -> bool:
        return identity in self._current()

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids in order."""
        with self._lock:
            order = self._in_order()
            return self._ids[order]

    def extend(self, texts: Mapping[int, str]) -> None:
        """Add texts by id, or replace them. Raises what the embedder raises."""
        if not texts:
            return
        vectors = self._embedder.embed(list(texts.values()))
        with self._lock:
            self._current()
            if self._store is not None:
                model_id = self._embedder.model_id
                self._note(self._store.put_index_vectors(self._name, model_id, texts, vectors))
            self._put(list(texts), vectors)

    def remove(self, ids: Ids) -> None:
        """Remove texts; ids that are not there are passed over."""
        with self._lock:
            known = [int(identity) for identity in ids if int(identity) in self._current()]
            if known and self._store is not None:
                self._note(self._store.remove_from_index(self._name, known))
            for identity in known:  # the last vector moves to the slot that becomes free
                slot, last = self._slots.pop(identity), len(self._slots)
                if slot != last:
                    self._ids[slot], self._vectors[slot] = self._ids[last], self._vectors[last]
                    self._slots[int(self._ids[slot])] = slot
            self._order = None

    def scores(self, query: Query, ids: Ids | None = None) -> NDArray[np.float32]:
        """The cosine of each text, in the order of ``ids``, or of all ids in order.

        NaN where a text is not there.
        """
        vector = self._embed(query)
        with self._lock:
            slots = self._in_order() if ids is None else self._slots_of(ids)
            found = np.full(len(slots), np.nan, dtype=np.float32)
            found[slots >= 0] = self._compare(vector, slots[slots >= 0])
        return found

    def search(self, query: Query, k: int, among: Ids | None = None) -> list[Hit]:
        """The ``k`` texts most like the query, best first, ties by id.

        ``among`` names the ids that may be found.
        """
        vector = self._embed(query)
        with self._lock:
            slots = np.arange(len(self._current()))
            if among is not None:
                slots = np.unique(self._slots_of(among))
                slots = slots[slots >= 0]
            found = best(self._compare(vector, slots), k)
            hits = [Hit(int(self._ids[slots[place]]), score) for place, score in found]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def _embed(self, query: Query) -> NDArray[np.float32]:
        if not isinstance(query, str):
            return query
        vector: NDArray[np.float32] = self._embedder.embed([query], task="query")[0]
        return vector

    def _compare(
        self, vector: NDArray[np.float32], slots: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        size = len(self._slots)
        if _FEW * len(slots) <= size:
            return _multiply(self._vectors[slots], vector)
        return _multiply(self._vectors[:size], vector)[slots]

    def _slots_of(self, ids: Ids) -> NDArray[np.int64]:
        """The slot of each id, -1 where it is not there."""
        order = self._in_order()
        places = places_of(self._ids[order], ids)
        return np.where(places >= 0, order[places], -1) if len(order) else places

    def _in_order(self) -> NDArray[np.int64]:
        """The slots by id."""
        size = len(self._current())
        order = self._order
        if order is None:
            order = self._order = np.argsort(self._ids[:size], kind="stable")
        return order

    def _current(self) -> dict[int, int]:
        """The slot of each id, read again where another process has changed the index."""
        with self._lock:
            if self._store is not None:
                version = self._store.index_version(self._name)
                if version != self._version:
                    self._slots.clear()
                    rows = self._store.read_index_vectors(self._name)
                    joined = np.frombuffer(b"".join(vector for _, vector in rows), "<f4")
                    self._put(
                        [identity for identity, _ in rows],
                        joined.reshape(len(rows), self._embedder.dims),
                    )
                    self._version = version
            return self._slots

    def _put(self, ids: list[int], vectors: NDArray[np.float32]) -> None:
        size = len(self._slots)
        if size + len(ids) > len(self._ids):
            room = max(size + len(ids), 2 * size, 64)
            grown_ids = np.empty(room, dtype=np.int64)
            grown = np.empty((room, self._embedder.dims), dtype=np.float32)
            grown_ids[:size], grown[:size] = self._ids[:size], self._vectors[:size]
            self._ids, self._vectors = grown_ids, grown
        slots = [self._slots.setdefault(identity, len(self._slots)) for identity in ids]
        self._ids[slots], self._vectors[slots] = ids, vectors
        self._order = None

    def _note(self, version: int) -> None:
        """Take a version for ours unless another process wrote in between."""
        self._version = version if version == self._version + 1 else -1


def _multiply(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Compute inner products, in blocks so small that BLAS uses one thread for each.

    Reading memory takes the time, so a second thread gains little; on a busy machine, waiting for
    it takes fifteen times as long as the product itself.
    """
    found = np.empty(len(vectors), dtype=np.float32)
    step = max(1, _BLOCK // len(vector))
    for start in range(0, len(vectors), step):
        found[start : start + step] = vectors[start : start + step] @ vector
    return found


class HybridIndex:
    """Texts found by words and by meaning, fused by their ranks; used like the two indexes.

    ``depth`` hits of each are fused.
    """

    def __init__(
        self, embedder: Embedder, store: Store | None = None, name: str = "", *, depth: int = 100
    ) -> None:
        self.words = LexicalIndex(store, name)
        self.vectors = VectorIndex(embedder, store, name)
        self._depth = depth

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, identity: object) -> bool:
        return identity in self.words and identity in self.vectors

    def extend(self, texts: Mapping[int, str]) -> None:
        self.vectors.extend(texts)
        self.words.extend(texts)

    def remove(self, ids: Ids) -> None:
        self.words.remove(ids)
        self.vectors.remove(ids)

    def search(
        self, query: str, k: int, among: Ids | None = None, *, vector: Query | None = None
    ) -> list[Hit]:
        """The ``k`` best by both, best first; ``vector`` is the query's, if it is known."""
        depth = max(self._depth, k)
        dense = self.vectors.search(query if vector is None else vector, depth, among)
        return fuse_hits([dense, self.words.search(query, depth, among)])[:k]
