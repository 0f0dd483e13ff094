"""Texts found by their meaning: exact search over the vectors of an embedder, by FAISS.

    index = VectorIndex(embedder)
    index.extend({7: "Ann met Bo.", 9: "The ring was lost at sea."})
    index.search("Where is the ring?", 1)          # [Hit(id=9, score=0.61)]

Every vector is compared with the query: 18 ms for 100,000 vectors of 384 numbers on one core that
other work shared (LOG.md), with nothing to build and nothing to tune. Above ``EXACT_UP_TO`` vectors
a process that goes on searching divides them into cells (``mgl.retrieval.cells``) in a thread; from
then on only the candidates of the nearest cells are compared. ``open_index`` opens the index of an
embedder that ranks by more (``mgl.retrieval.multi``): dense vectors are searched in FAISS and token
weights in an inverted index, and the candidates of both are scored by all that it names.
"""

from __future__ import annotations

import math
import threading
from array import array
from collections import defaultdict
from collections.abc import Iterable, KeysView, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder, Hit, Ids
from mgl.retrieval.cells import SAMPLED, Cells, import_faiss
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.multi import (
    CANDIDATES,
    PARTS,
    WEIGHTS,
    Encoded,
    MultiEmbedder,
    ranks_by_more,
    score_tokens,
    unpack_weights,
)
from mgl.retrieval.ranking import best, fuse_hits, places_of

if TYPE_CHECKING:
    from mgl.store import Store

EXACT_UP_TO: Final = 200_000
"""The most vectors that are all compared with a query: in 23 ms, of 384 numbers each."""
_EXACT_AMONG: Final = 10_000
"""The most vectors left by a filter that are all compared."""
_MOST_FOUND: Final = 1_000
_SEARCHES: Final = 3
"""Searches before the cells are made, which takes 11 s of a core for a million vectors."""
_SLICE: Final = 8_192

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

    def __init__(
        self,
        embedder: Embedder,
        store: Store | None = None,
        name: str = "",
        *,
        exact_up_to: int = EXACT_UP_TO,
    ) -> None:
        self._embedder = embedder
        self._store = store
        self._name = f"{name}@{embedder.model_id}"
        self._version = 0
        self._lock = threading.RLock()
        self._slots: dict[int, int] = {}
        self._ids = array("q")
        self._order: NDArray[np.int64] | None = None
        self._exact_up_to = exact_up_to
        self._searches = self._reads = 0
        self._cells: Cells | None = None
        self._cells_for = 0
        self._dividing: threading.Thread | None = None
        self._changed: set[int] = set()

    @cached_property
    def _flat(self) -> Any:
        return import_faiss().IndexFlatIP(self._embedder.dims)

    def __len__(self) -> int:
        return len(self._current())

    def __contains__(self, identity: object) -> bool:
        return identity in self._current()

    @property
    def known(self) -> KeysView[int]:
        """All ids, in any order; they grow with the index."""
        return self._current().keys()

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids in order."""
        with self._lock:
            order = self._in_order()
            return np.array(self._ids, dtype=np.int64)[order]

    def extend(self, texts: Mapping[int, str]) -> None:
        """Add texts by id, or replace them. Raises what the embedder raises."""
        if not texts:
            return
        self._put_dense(texts, self._embedder.embed(list(texts.values())))

    def _put_dense(self, texts: Mapping[int, str], vectors: NDArray[np.float32]) -> None:
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
            if self._dividing is not None:
                self._changed.update(known)
            if self._cells is not None:
                self._cells.remove(np.array(known, dtype=np.int64))
            vectors = self._vectors()
            for identity in known:  # the last vector moves to the slot that becomes free
                slot, last = self._slots.pop(identity), self._ids.pop()
                if last != identity:
                    vectors[slot] = vectors[len(self._slots)]
                    self._ids[slot], self._slots[last] = last, slot
            self._flat.remove_ids(import_faiss().IDSelectorRange(len(self._slots), len(vectors)))
            self._order = None

    def scores(self, query: Query, ids: Ids | None = None) -> NDArray[np.float32]:
        """The cosine of each text, in the order of ``ids``, or of all ids in order.

        NaN where a text is not there.
        """
        vector = self._embed(query)
        with self._lock:
            slots = self._in_order() if ids is None else self._slots_of(ids)
            found = self._compare(vector, slots)
        return np.where(slots < 0, np.nan, found).astype(np.float32)

    def search(self, query: Query, k: int, among: Ids | None = None) -> list[Hit]:
        """The ``k`` texts most like the query, best first, ties by id.

        ``among`` names the ids that may be found.
        """
        vector = self._embed(query)
        with self._lock:
            size = len(self._current())
            if (slots := self._choose_slots(vector, k, among)) is None:
                scores, places = self._flat.search(vector[np.newaxis], max(1, min(k, size)))
                found = [*zip(places[0], scores[0], strict=True)][: min(k, size)]
            else:
                found = [(slots[at], score) for at, score in best(self._compare(vector, slots), k)]
            hits = [Hit(self._ids[slot], float(score)) for slot, score in found]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))

    def _embed(self, query: Query) -> NDArray[np.float32]:
        if not isinstance(query, str):
            return query
        vector: NDArray[np.float32] = self._embedder.embed([query], task="query")[0]
        return vector

    def _compare(
        self, vector: NDArray[np.float32], slots: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The cosine with the vector of each slot; -inf where the slot is -1."""
        found = np.empty(len(slots), dtype=np.float32)
        if len(slots):
            faiss, wanted = import_faiss(), np.ascontiguousarray(slots)
            query = np.ascontiguousarray(vector, np.float32).reshape(self._embedder.dims)
            asked, given, labels = map(faiss.swig_ptr, (query, found, wanted))
            self._flat.compute_distance_subset(1, asked, len(slots), given, labels)
        return found

    # Cells

    @property
    def is_divided(self) -> bool:
        """Whether a search compares the candidates of cells alone."""
        return self._cells is not None

    def wait(self) -> None:
        """Wait until a division that was begun is done."""
        if (dividing := self._dividing) is not None:
            dividing.join()

    def _choose_slots(
        self, vector: NDArray[np.float32], k: int, among: Ids | None
    ) -> NDArray[np.int64] | None:
        """The slots of the vectors that a search compares with the query, which are candidates of
        the cells where there are any; None where it compares all vectors."""
        self._divide_later()
        few = among is not None and len(among) <= min(_EXACT_AMONG, self._exact_up_to)
        if self._cells is None or few or k > _MOST_FOUND:
            slots = None if among is None else np.unique(self._slots_of(among))
            return None if slots is None else slots[slots >= 0]
        chosen: NDArray[np.int64] | None = None
        if isinstance(among, np.ndarray):
            chosen = among
        elif among is not None:
            chosen = np.fromiter(among, np.int64, len(among))
        found = self._cells.find(vector, 4 * k + 60, chosen)
        return np.array([self._slots[each] for each in found.tolist()], dtype=np.int64)

    def _divide_later(self) -> None:
        """Start a thread that divides the vectors into cells, once there are many vectors; start it
        again once there are four times as many."""
        self._searches += 1
        size = len(self._slots)
        if self._dividing is not None or self._searches < _SEARCHES or size <= self._exact_up_to:
            return
        if self._cells is not None and size < 4 * self._cells_for:
            return
        ids = np.array(self._ids, dtype=np.int64)
        if ids.min() < 0 or ids.max() > 64 * size:
            return  # a filter is a bit for each id
        self._changed.clear()
        self._dividing = threading.Thread(target=self._divide, args=(ids, self._reads), daemon=True)
        self._dividing.start()

    def _divide(self, ids: NDArray[np.int64], reads: int) -> None:
        """Divide the vectors of ``ids`` into cells; what changes meanwhile is in ``_changed``.

        The lock is held for a few milliseconds at a time. ``reads`` is ``_reads`` as it was when
        ``ids`` were listed: if the store was read again since, the cells are discarded.
        """
        count = math.isqrt(len(ids))
        draw = np.random.default_rng(0)
        sample = draw.choice(ids, min(len(ids), SAMPLED * count), replace=False, shuffle=False)
        parts = [self._copy(sample[at : at + _SLICE]) for at in range(0, len(sample), _SLICE)]
        cells = Cells.train(np.concatenate([vectors for _, vectors in parts]), count)
        for at in range(0, len(ids), _SLICE):
            cells.add(*self._copy(ids[at : at + _SLICE]))
        with self._lock:
            if reads == self._reads:
                changed = np.array([*self._changed], dtype=np.int64)
                cells.remove(changed)
                cells.add(*self._copy(changed))
                self._cells, self._cells_for = cells, len(ids)
            self._dividing = None

    def _copy(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Copy the vectors of the ids that are still there; return these ids and the vectors."""
        with self._lock:
            known = [each for each in ids.tolist() if each in self._slots]
            slots = [self._slots[each] for each in known]
            return np.array(known, dtype=np.int64), self._vectors()[slots]

    def _vectors(self) -> NDArray[np.float32]:
        """FAISS's own memory of the vectors by slot; void when vectors are added."""
        size, dims = self._flat.ntotal, self._embedder.dims
        held: NDArray[np.float32] = import_faiss().rev_swig_ptr(self._flat.get_xb(), size * dims)
        return held.reshape(size, dims)

    def _slots_of(self, ids: Ids) -> NDArray[np.int64]:
        """The slot of each id, -1 where it is not there."""
        order = self._in_order()
        places = places_of(np.array(self._ids, dtype=np.int64)[order], ids)
        return np.where(places >= 0, order[places], -1) if len(order) else places

    def _in_order(self) -> NDArray[np.int64]:
        """The slots by id."""
        self._current()
        if self._order is None:
            self._order = np.argsort(self._ids, kind="stable")
        return self._order

    def _current(self) -> dict[int, int]:
        """The slot of each id, read again where another process has changed the index."""
        with self._lock:
            if self._store is not None:
                version = self._store.index_version(self._name)
                if version != self._version:
                    self._slots.clear()
                    ids = self._store.read_index_block(self._name, self._make_room)
                    self._ids, self._order = array("q", ids.tobytes()), None
                    self._slots.update(zip(self._ids, range(len(ids)), strict=True))
                    self._cells, self._reads = None, self._reads + 1
                    self._version = version
            return self._slots

    def _make_room(self, size: int) -> NDArray[np.float32]:
        """Make room for ``size`` vectors in FAISS's memory, and return it to be written into."""
        self._flat.reset()
        self._flat.codes.resize(size * self._flat.code_size)
        self._flat.ntotal = size
        return self._vectors()

    def _put(self, ids: Sequence[int], vectors: NDArray[np.float32]) -> None:
        new = np.array([identity not in self._slots for identity in ids], dtype=bool)
        for identity, vector in zip(ids, vectors, strict=True):
            if identity in self._slots:
                self._vectors()[self._slots[identity]] = vector
            else:
                self._slots[identity] = len(self._slots)
                self._ids.append(identity)
        self._flat.add(vectors[new])
        self._order = None
        if self._dividing is not None:
            self._changed.update(ids)
        if self._cells is not None:
            named = np.array(ids, dtype=np.int64)
            self._cells.remove(named[~new])
            self._cells.add(named, vectors)

    def _note(self, version: int) -> None:
        """Take a version for ours unless another process wrote in between."""
        self._version = version if version == self._version + 1 else -1


class MultiIndex(VectorIndex):
    """A ``VectorIndex`` that ranks texts by all that its embedder's ``ranking`` names.

    A query that comes as a dense vector is compared with dense vectors alone. ``scores`` are those
    of ``search``. Weights and token vectors are kept in the store beside the dense vectors. A
    text has hundreds of token vectors, so each question reads only those of its candidates.
    """

    def __init__(self, embedder: MultiEmbedder, store: Store | None = None, name: str = "") -> None:
        super().__init__(embedder, store, name)
        self._multi = embedder
        self._parts = {part: f"{name}/{part}@{embedder.model_id}" for part in PARTS}
        self._read_at = -1
        self._weights: dict[int, Mapping[int, float]] = {}
        self._postings: defaultdict[int, dict[int, float]] = defaultdict(dict)
        self._tokens: dict[int, NDArray[np.float32]] = {}

    def extend(self, texts: Mapping[int, str]) -> None:
        if not texts:
            return
        encoded = self._multi.encode(list(texts.values()))
        with self._lock:
            self._current()
            for identity, one in zip(texts, encoded, strict=True):
                self._put_weights(identity, one.lexical)
                if self._store is None:
                    self._tokens[identity] = one.tokens
            if self._store is not None:
                packed = zip(*(one.pack()[1:] for one in encoded), strict=True)
                for part, own in zip(PARTS, packed, strict=True):
                    model_id = f"{self._multi.model_id} {part}"
                    self._store.put_index_vectors(self._parts[part], model_id, texts, own)
            self._put_dense(texts, np.stack([one.dense for one in encoded]))
            self._read_at = self._version

    def remove(self, ids: Ids) -> None:
        with self._lock:
            known = [int(identity) for identity in ids if int(identity) in self._current()]
            for identity in known:
                self._drop_parts(identity)
                if self._store is not None:
                    for name in self._parts.values():
                        self._store.remove_from_index(name, [identity])
            super().remove(known)
            self._read_at = self._version

    def scores(self, query: Query, ids: Ids | None = None) -> NDArray[np.float32]:
        if not isinstance(query, str):
            return super().scores(query, ids)
        with self._lock:
            asked = self._encode(query)
            wanted = self.ids.tolist() if ids is None else [int(identity) for identity in ids]
            dense = super().scores(asked.dense, wanted)
            return self._join(asked, wanted, dense)

    def search(self, query: Query, k: int, among: Ids | None = None) -> list[Hit]:
        if not isinstance(query, str):
            return super().search(query, k, among)
        asked, depth = self._encode(query), max(k, CANDIDATES)
        with self._lock:
            found = {hit.id for hit in super().search(asked.dense, depth, among)}
            lexical = self._match(asked.lexical)
            if among is not None:
                lexical = {each: lexical[each] for each in map(int, among) if each in lexical}
            found.update(sorted(lexical, key=lambda each: (-lexical[each], each))[:depth])
            ids = sorted(found)
            joined = self._join(asked, ids, super().scores(asked.dense, ids))
        hits = [Hit(each, float(score)) for each, score in zip(ids, joined, strict=True)]
        return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:k]

    def _encode(self, query: str) -> Encoded:
        (asked,) = self._multi.encode([query], task="query")
        return asked

    def _match(self, asked: Mapping[int, float]) -> dict[int, float]:
        """s_lex of every text that shares a token with the query."""
        self._current()
        found: defaultdict[int, float] = defaultdict(float)
        for token, weight in asked.items():
            for identity, own in self._postings.get(token, {}).items():
                found[identity] += weight * own
        return found

    def _join(
        self, asked: Encoded, ids: Sequence[int], dense: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        weights = WEIGHTS[self._multi.ranking]
        lexical = self._match(asked.lexical)
        joined = weights[0] * dense.astype(np.float64)
        joined += weights[1] * np.array([lexical.get(each, 0.0) for each in ids])
        if weights[2]:
            empty = np.zeros((0, self._multi.dims), dtype=np.float32)
            tokens = self._read_tokens(ids)
            joined += weights[2] * np.array(
                [score_tokens(asked.tokens, tokens.get(each, empty)) for each in ids]
            )
        return np.asarray(joined / sum(weights), dtype=np.float32)

    def _read_tokens(self, ids: Sequence[int]) -> Mapping[int, NDArray[np.float32]]:
        if self._store is None:
            return self._tokens
        rows = self._store.read_index_vectors(self._parts["tokens"], ids)
        return {each: np.frombuffer(row, "<f4").reshape(-1, self._multi.dims) for each, row in rows}

    def _current(self) -> dict[int, int]:
        slots = super()._current()
        if self._store is not None and self._read_at != self._version:
            self._weights.clear()
            self._postings.clear()
            for identity, row in self._store.read_index_vectors(self._parts["lexical"]):
                if identity in slots:
                    self._put_weights(identity, unpack_weights(np.frombuffer(row, "<f4")))
            self._read_at = self._version
        return slots

    def _put_weights(self, identity: int, lexical: Mapping[int, float]) -> None:
        self._drop_parts(identity)
        self._weights[identity] = lexical
        for token, weight in lexical.items():
            self._postings[token][identity] = weight

    def _drop_parts(self, identity: int) -> None:
        for token in self._weights.pop(identity, {}):
            del self._postings[token][identity]
        self._tokens.pop(identity, None)


def open_index(embedder: Embedder, store: Store | None = None, name: str = "") -> VectorIndex:
    """Open the index that an embedder ranks by: of dense vectors alone, or of all three."""
    if ranks_by_more(embedder):
        return MultiIndex(embedder, store, name)
    return VectorIndex(embedder, store, name)


class HybridIndex:
    """Texts found by words and by meaning, fused by their ranks; used like the two indexes.

    ``depth`` hits of each are fused.
    """

    def __init__(
        self, embedder: Embedder, store: Store | None = None, name: str = "", *, depth: int = 100
    ) -> None:
        self.words = LexicalIndex(store, name)
        self.vectors = open_index(embedder, store, name)
        self._depth = depth

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, identity: object) -> bool:
        return identity in self.words and identity in self.vectors

    def find_missing(self, ids: Iterable[int]) -> list[int]:
        """Find the ids that words or meaning lack, in their order; the store is asked once."""
        words, vectors = self.words.known, self.vectors.known
        return [each for each in ids if each not in words or each not in vectors]

    def extend(self, texts: Mapping[int, str]) -> None:
        self.vectors.extend(texts)
        self.words.extend(texts)

    def remove(self, ids: Ids) -> None:
        self.words.remove(ids)
        self.vectors.remove(ids)

    def search(
        self, query: str, k: int, among: Ids | None = None, *, vector: Query | None = None
    ) -> list[Hit]:
        """The ``k`` best by both, best first; ``vector`` is the query's, if it is known: an index
        of dense vectors alone compares it."""
        depth = max(self._depth, k)
        asked = query if vector is None or isinstance(self.vectors, MultiIndex) else vector
        dense = self.vectors.search(asked, depth, among)
        return fuse_hits([dense, self.words.search(query, depth, among)])[:k]
