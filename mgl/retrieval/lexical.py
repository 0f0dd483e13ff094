"""Texts found by their words: BM25 over an index that grows with a memory.

    >>> index = LexicalIndex.of(["Ann met Bo.", "The ring was lost at sea."])
    >>> [hit.id for hit in index.search("Who lost the rings?", 5)]
    [1]

Words are stemmed (Snowball, English), English stop words are passed over. Scores equal those of
bm25s for Lucene's variant of BM25 (k1 = 1.5, b = 0.75), to the last bit: bm25s computes them when
an index is built, here they are computed when it is asked, so that adding a text costs no more
than its own words. Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009);
Kamphuis et al., Which BM25 Do You Mean? (ECIR 2020).

It does not know meaning. Words of other languages are found as they are written, Chinese and
Japanese by pairs of neighbouring characters, as Lucene's CJK analyzer does. Of a long query it
takes the first ``MOST_ASKED`` stems.
"""

from __future__ import annotations

import hashlib
import math
import re
import threading
from array import array
from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from mgl.prompt import pair_characters, plain_text
from mgl.retrieval.base import Hit, Ids
from mgl.retrieval.ranking import best, places_of
from mgl.text.stopwords import STOP_WORDS

if TYPE_CHECKING:
    from mgl.store import Store
    from mgl.store.caches import StemRow

_K1: Final = 1.5
_B: Final = 0.75
MOST_ASKED: Final = 1000
_ASKED_CHARACTERS: Final = 20 * MOST_ASKED
_WORD: Final = re.compile(r"\b\w\w+\b")


def stems(text: str) -> list[str]:
    """The stemmed words of a text without stop words, lower-cased, in order."""
    (words,) = all_stems([text])
    return words


def all_stems(texts: Sequence[str]) -> list[list[str]]:
    """``stems`` of each text; those of ``bm25s.tokenize``, where words have spaces."""
    from Stemmer import Stemmer

    return list(map(Stemmer("english").stemWords, split_words(texts, STOP_WORDS)))


def split_words(texts: Iterable[str], without: Collection[str] = ()) -> list[list[str]]:
    """The words of each text in order, lower-cased, of two letters and more, but for some; the
    pairs of neighbouring characters of Chinese and Japanese."""
    words = (_WORD.findall(pair_characters(plain_text(text)).lower()) for text in texts)
    return [[word for word in each if word not in without] for each in words]


class LexicalIndex:
    """BM25 over texts by integer id, kept in a store under a name, or in memory without one.

        words = LexicalIndex(store, f"{memory_id}/turns")
        words.extend({turn.number: turn.text}, starts=[...])      # with each append
        words.search("Who lost the ring?", 10)                    # with each question
        words.remove([turn.number])                               # with each deletion

    Open it once for a memory and keep it: it reads what is stored when first used (half a second
    for 100,000 texts), ``extend`` writes its own rows only, and a change by another process is
    noticed. Also extend it, at open, by the memory's texts that it lacks (``in``): so a memory
    that has no index yet, or lost it, gets one.

    ``before`` and ``after`` rank a text together with its neighbours, as if the index held the
    words of all of them joined. Neighbours have consecutive ids and never reach across a text in
    ``starts``, with which a session begins. So one index ranks a turn alone, a turn with the one
    before (``before=1``) and a turn with two on either side (``before=2, after=2``). A turn that
    was deleted ends its neighbourhood, unless it stays in the index as an empty text.

    Nothing of a removed text stays on disk, hashes included. Safe from several threads.
    """

    def __init__(self, store: Store | None = None, name: str = "") -> None:
        self._store = store
        self._name = name
        self._version = 0
        self._postings = _Postings()
        self._lock = threading.RLock()

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """An index in memory; ids are places."""
        index = cls()
        index.extend(dict(enumerate(texts)))
        return index

    def __len__(self) -> int:
        return len(self._current().slots)

    def __contains__(self, identity: object) -> bool:
        return identity in self._current().slots

    @property
    def known(self) -> KeysView[int]:
        """All ids, in any order; they grow with the index."""
        return self._current().slots.keys()

    @property
    def ids(self) -> NDArray[np.int64]:
        """All ids in order."""
        return self._current().view().ids

    def extend(self, texts: Mapping[int, str], starts: Collection[int] = ()) -> None:
        """Add texts by id, or replace them; ``starts`` are the ids with which a session begins."""
        if not texts:
            return
        first = frozenset(starts)
        made = [
            (identity, identity in first, np.array(list(map(_hash, words)), "<i8").tobytes())
            for identity, words in zip(texts, all_stems(list(texts.values())), strict=True)
        ]
        with self._lock:
            postings = self._current()
            if self._store is not None:
                self._note(self._store.put_stems(self._name, made))
            postings.add(made)

    def remove(self, ids: Ids) -> None:
        """Remove texts; ids that are not there are passed over."""
        with self._lock:
            postings = self._current()
            known = [int(identity) for identity in ids if int(identity) in postings.slots]
            if known and self._store is not None:
                self._note(self._store.remove_from_index(self._name, known))
            postings.remove(known)

    def scores(
        self, query: str, ids: Ids | None = None, *, before: int = 0, after: int = 0
    ) -> NDArray[np.float32]:
        """The score of each text, in the order of ``ids``, or of all ids in order.

        0 where it shares no stem with the query, or is not there.
        """
        with self._lock:
            postings = self._current()
            asked = stems(query[:_ASKED_CHARACTERS])[:MOST_ASKED]
            found = postings.scores(map(_hash, asked), before, after)
            if ids is None:
                return found
            places = places_of(postings.view().ids, ids)
        chosen = np.zeros(len(places), dtype=np.float32)
        chosen[places >= 0] = found[places[places >= 0]]
        return chosen

    def search(
        self,
        query: str,
        k: int,
        among: Ids | None = None,
        *,
        before: int = 0,
        after: int = 0,
    ) -> list[Hit]:
        """The ``k`` best of the texts that share a stem with the query, best first.

        ``among`` names the ids that may be found.
        """
        with self._lock:
            found = self.scores(query, before=before, after=after)
            ids = self.ids
        if among is None:
            places = np.flatnonzero(found)
        else:
            places = np.unique(places_of(ids, among))
            places = places[places >= 0]
            places = places[found[places] > 0]
        return [Hit(int(ids[places[at]]), score) for at, score in best(found[places], k)]

    def _current(self) -> _Postings:
        """The postings, read again where another process has changed them."""
        with self._lock:
            if self._store is not None:
                version = self._store.index_version(self._name)
                if version != self._version:
                    self._postings = _Postings()
                    self._postings.add(self._store.read_stems(self._name))
                    self._version = version
            return self._postings

    def _note(self, version: int) -> None:
        """Take a version for ours unless another process wrote in between."""
        self._version = version if version == self._version + 1 else -1


@dataclass(frozen=True)
class _View:
    """The living texts in the order of their ids, each with its neighbours.

    ``places`` has the place of each slot, -1 for one that is unused; it is None where each text's
    slot is its place. ``sessions`` numbers the runs of neighbours; ``norms`` is the part of BM25
    that depends on a text's length alone.
    """

    ids: NDArray[np.int64]
    places: NDArray[np.int64] | None
    sessions: NDArray[np.int64]
    norms: NDArray[np.float64]

    def find_places(self, slots: NDArray[np.int32]) -> NDArray[np.integer]:
        """The places of the texts in some slots, without the unused ones."""
        if self.places is None:
            return slots
        found = self.places[slots]
        return found[found >= 0]


_NONE: Final = np.zeros(0, dtype=np.int32)


@dataclass
class _Postings:
    """Where each stem occurs: once per occurrence, the slot of its text.

    The texts that are added first, such as all that a store has, stay as they are read: in
    ``_words``, with the slot of each word in ``_owners``. A stem is looked up there when it is
    first asked for (half a millisecond among the million words of 100,000 turns), so the one
    question that most processes are asked sorts nothing. Texts that are added later are kept by
    stem. A text that is removed leaves its slot unused until half of all slots are.
    """

    slots: dict[int, int] = field(default_factory=dict)
    _ids: array[int] = field(default_factory=lambda: array("q"))
    _lengths: array[int] = field(default_factory=lambda: array("q"))
    _starts: array[int] = field(default_factory=lambda: array("b"))
    _words: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _owners: NDArray[np.int32] = field(default_factory=lambda: _NONE)
    _first: dict[int, NDArray[np.int32]] = field(default_factory=dict)
    _later: dict[int, array[int]] = field(default_factory=dict)
    _views: dict[tuple[int, int], _View] = field(default_factory=dict)

    def add(self, rows: Sequence[StemRow]) -> None:
        ids = [identity for identity, _, _ in rows]
        if self.slots:
            self.remove(ids)
        first = len(self._ids)
        lengths = [len(words) // 8 for _, _, words in rows]
        self._lengths.extend(lengths)
        self._ids.extend(ids)
        self._starts.extend(starts for _, starts, _ in rows)
        self.slots.update(zip(ids, range(first, len(self._ids)), strict=True))
        words = np.frombuffer(b"".join(words for _, _, words in rows), "<i8")
        owners = np.repeat(np.arange(first, len(self._ids), dtype=np.int32), lengths)
        if first:
            for stem, slot in zip(words.tolist(), owners.tolist(), strict=True):
                self._later.setdefault(stem, array("i")).append(slot)
        else:
            self._words, self._owners = words, owners
            self._first.clear()
        self._views.clear()

    def remove(self, ids: Iterable[int]) -> None:
        for identity in ids:
            self.slots.pop(identity, None)
        self._views.clear()
        if len(self._ids) > 2 * len(self.slots) + 1000:
            self._compact()

    def scores(self, query: Iterable[int], before: int, after: int) -> NDArray[np.float32]:
        """One score per text, in the order of ids; terms are added as float32, as bm25s does."""
        view = self.view(before, after)
        total = np.zeros(len(view.ids), dtype=np.float32)
        for stem in query:
            slots = view.find_places(self._find(stem))
            places, held = _count_windows(slots, view.sessions, before, after)
            rarity = math.log(1 + (len(total) - len(places) + 0.5) / (len(places) + 0.5))
            weights = np.float32(rarity) * (held / (view.norms[places] + held))
            total[places] += weights.astype(np.float32)
        return total

    def _find(self, stem: int) -> NDArray[np.int32]:
        """The slots of the texts that a stem occurs in, in order."""
        if stem not in self._first:
            self._first[stem] = self._owners[self._words == stem]
        later = np.frombuffer(self._later[stem], np.int32) if stem in self._later else _NONE
        return np.concatenate([self._first[stem], later]) if len(later) else self._first[stem]

    def view(self, before: int = 0, after: int = 0) -> _View:
        if (before, after) not in self._views:
            ids, slots, places = np.array(self._ids, dtype=np.int64), None, None
            if len(self.slots) < len(ids) or bool((ids[1:] < ids[:-1]).any()):
                slots = np.fromiter(self.slots.values(), np.int64, len(self.slots))
                slots = slots[np.argsort(ids[slots])]
                places = np.full(len(ids), -1, dtype=np.int64)
                places[slots] = np.arange(len(slots))
                ids = ids[slots]
            starts, lengths = np.array(self._starts), np.array(self._lengths)
            if slots is not None:
                starts, lengths = starts[slots], lengths[slots]
            sessions = np.cumsum(starts | (np.diff(ids, prepend=-2) != 1), dtype=np.int64)
            lengths = _sum_windows(lengths, sessions, before, after)
            mean = max(lengths.mean(), 1e-9) if len(ids) else 1.0
            norms = _K1 * ((1 - _B) + _B * lengths / mean)
            self._views[before, after] = _View(ids, places, sessions, norms)
        return self._views[before, after]

    def _compact(self) -> None:
        """Renumber the slots without the unused ones."""
        living = sorted(self.slots.values())
        new = np.full(len(self._ids), -1, dtype=np.int32)
        new[living] = np.arange(len(living))
        self.slots = {identity: int(new[slot]) for identity, slot in self.slots.items()}
        self._ids = array("q", (self._ids[slot] for slot in living))
        self._lengths = array("q", (self._lengths[slot] for slot in living))
        self._starts = array("b", (self._starts[slot] for slot in living))
        owners = new[self._owners]
        self._words, self._owners = self._words[owners >= 0], owners[owners >= 0]
        self._first.clear()
        for stem, later in list(self._later.items()):
            slots = new[np.frombuffer(later, np.int32)]
            if len(slots := slots[slots >= 0]):
                self._later[stem] = array("i", slots.tobytes())
            else:
                del self._later[stem]


def _sum_windows(
    values: NDArray[np.int64], sessions: NDArray[np.int64], before: int, after: int
) -> NDArray[np.int64]:
    """Each value with those of its neighbours in the same session added."""
    total = values
    for distance in range(1, max(before, after) + 1):
        joined = sessions[distance:] == sessions[:-distance]
        total = values.copy() if total is values else total
        if distance <= before:
            total[distance:] += values[:-distance] * joined
        if distance <= after:
            total[:-distance] += values[distance:] * joined
    return total


def _count_windows(
    places: NDArray[np.integer], sessions: NDArray[np.int64], before: int, after: int
) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    """The texts that hold an occurrence, themselves or in a neighbour, and how many they hold."""
    reached = [places]
    for distance in (*range(-after, 0), *range(1, before + 1)):
        others = places + distance
        inside = (others >= 0) & (others < len(sessions))
        inside[inside] = sessions[others[inside]] == sessions[places[inside]]
        reached.append(others[inside])
    counts = np.bincount(np.concatenate(reached), minlength=len(sessions))
    found = np.flatnonzero(counts)
    return found, counts[found]


@lru_cache(maxsize=1 << 16)
def _hash(stem: str) -> int:
    digest = hashlib.blake2b(stem.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)
