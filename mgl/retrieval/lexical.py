"""Texts found by their words: two indexes with one way to ask them.

``StaticTexts`` is bm25s over texts that do not change, in memory; ``StoredTexts`` is FTS5 in the
store, for texts that come and go, in the same transactions as the rest. Both stem English words
and pass over English stop words. bm25s answers many times faster over very many texts; FTS5 takes
a new text without indexing the others again.

    >>> index = StaticTexts([10, 20], ["Ann met Bo.", "The ring was lost at sea."])
    >>> [hit.id for hit in index.search("Who lost the rings?", 5)]
    [20]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np

from mgl.errors import UsageError
from mgl.retrieval.base import Hit
from mgl.retrieval.bm25 import Bm25
from mgl.retrieval.rows import best, found_in
from mgl.retrieval.vectors import Ids, id_array, id_set

__all__ = ["LexicalIndex", "StaticTexts", "StoredTexts", "TextStore"]

_WORD: Final = re.compile(r"[^\W_]+")


class LexicalIndex(Protocol):
    """What finds texts by words."""

    def __len__(self) -> int: ...

    def search(self, query: str, count: int, among: Ids | None = None) -> list[Hit]:
        """The best texts that share a word with the query, best first, ties by id.

        ``among`` names the ids that may be found. A query without words finds nothing.
        """
        ...


class TextStore(Protocol):
    """The part of ``mgl.store.Store`` that keeps texts by their words."""

    def put_texts(self, index: str, values: Mapping[int, str]) -> None: ...

    def remove_texts(self, index: str, ids: Iterable[int]) -> int: ...

    def find_texts(
        self, index: str, words: Sequence[str], count: int, among: Iterable[int] | None = None
    ) -> list[tuple[int, float]]: ...

    def count_texts(self, index: str) -> int: ...


class StaticTexts:
    """A ``LexicalIndex`` over a list of texts that stays as it is."""

    def __init__(self, ids: Ids, texts: Sequence[str]) -> None:
        """UsageError where ids are not unique, or not as many as texts."""
        numbers = id_array(ids)
        if len(numbers) != len(texts) or len(np.unique(numbers)) < len(texts):
            raise UsageError(
                f"{len(texts)} texts need as many different ids", hint="give one id a text"
            )
        order = np.argsort(numbers)
        self._ids = numbers[order]
        self._bm25 = Bm25([texts[at] for at in order])

    def __len__(self) -> int:
        return len(self._ids)

    def search(self, query: str, count: int, among: Ids | None = None) -> list[Hit]:
        _require_positive(count)
        scores = self._bm25.scores(query)
        if among is None:
            places = np.flatnonzero(scores)
        else:
            places = found_in(self._ids, id_set(among))
            places = places[places >= 0]
            places = places[scores[places] > 0]
        found, order = best(scores[places][None], count)
        return [
            Hit(int(self._ids[places[at]]), float(score))
            for score, at in zip(found[0], order[0], strict=True)
        ]


class StoredTexts:
    """A ``LexicalIndex`` in a store, under a name; it grows and shrinks, and is kept."""

    def __init__(self, store: TextStore, name: str) -> None:
        self._store = store
        self._name = name

    def __len__(self) -> int:
        return self._store.count_texts(self._name)

    def put(self, texts: Mapping[int, str]) -> None:
        """Add texts by id, in place of those that are there, in one transaction."""
        self._store.put_texts(self._name, texts)

    def remove(self, ids: Ids) -> int:
        """Remove texts and return how many there were; those that are not there are no error."""
        return self._store.remove_texts(self._name, id_array(ids).tolist())

    def search(self, query: str, count: int, among: Ids | None = None) -> list[Hit]:
        _require_positive(count)
        allowed = None if among is None else id_array(among).tolist()
        found = self._store.find_texts(self._name, _words(query), count, allowed)
        return [Hit(identity, score) for identity, score in found]


def _words(query: str) -> list[str]:
    """The different words of a query, lower-cased, without English stop words."""
    from bm25s.stopwords import STOPWORDS_EN

    words = dict.fromkeys(_WORD.findall(query.lower()))
    return [word for word in words if word not in STOPWORDS_EN]


def _require_positive(count: int) -> None:
    if count < 1:
        raise UsageError(f"cannot find {count} hits", hint="ask for one or more")
