"""The nouns that a text comes back to, found by code; English alone.

    >>> text = "The ferryman saw the river. A ferryman, by his river, sees rivers. The river ran."
    >>> [found.name for found in find_nouns(text, min_count=2)]
    ['river', 'ferryman']

A word that is written small counts as a noun where an article or a possessive stands before it
often enough, and no further word of its kind behind it. So it misses some, and takes some
adjectives for one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from mgl.text.names import WORD, Name

__all__ = ["GrowingNouns", "find_nouns"]

_BEFORE: Final = frozenset(
    "the a an his her my your their our its this that these those no every each some "
    "another".split()
)
LEAST_SHARE: Final = 0.25
LEAST_LETTERS: Final = 3
UNSURE: Final = 0.2


def find_nouns(text: str, *, min_count: int = 3) -> list[Name]:
    """Nouns seen at least ``min_count`` times in all their forms, the most frequent first.

    ``name`` is the form that is written most often; ``aliases`` are all forms of one stem.
    """
    found = GrowingNouns(min_count=min_count)
    found.take(list(WORD.finditer(text)))
    return sorted(found.all(), key=lambda noun: (-len(noun.spans), noun.spans))


class GrowingNouns:
    """The nouns of a text that grows: at each length those that ``find_nouns`` finds in all of it.

    Words come in the order of the text, with the one that stands behind them, where that is known;
    those taken for the time being (``stays`` False) are forgotten with the next.
    """

    def __init__(self, *, min_count: int = 3) -> None:
        import Stemmer
        from bm25s.stopwords import STOPWORDS_EN

        self._min_count = min_count
        self._stop = frozenset(STOPWORDS_EN)
        self._stemmer = Stemmer.Stemmer("english")
        self._spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._forms: dict[str, Counter[str]] = defaultdict(Counter)
        self._marked: defaultdict[str, float] = defaultdict(float)
        self._places: list[tuple[int, int, str]] = []
        self._before: str | None = None
        self._open: list[tuple[str, str, float]] = []

    def take(
        self,
        words: Sequence[re.Match[str]],
        after: re.Match[str] | None = None,
        *,
        stays: bool = True,
    ) -> None:
        """Read further words."""
        self._take_back()
        for start, word, stem, mark in self._noted(words, after):
            if not stays:
                self._open.append((word, stem, self._marked[stem]))
            self._spans[stem].append((start, start + len(word)))
            self._forms[stem][word] += 1
            self._marked[stem] += mark
            self._places.append((start, start + len(word), stem))
        if stays and words:
            self._before = words[-1].group().lower()

    def all(self) -> Iterator[Name]:
        """The nouns, by the first place of their stems."""
        for stem, spans in self._spans.items():
            if self._keeps(stem):
                yield Name(self.name(stem), self.aliases(stem), tuple(spans))

    def within(self, start: int, end: int) -> list[tuple[int, int, str]]:
        """The places of nouns that begin in a range, each with the noun's stem."""
        first, last = (bisect_left(self._places, (place,)) for place in (start, end))
        found = self._places[first:last]
        return [each for each in found if self._keeps(each[2])]

    def name(self, stem: str) -> str:
        """The form that is written most often."""
        return self._forms[stem].most_common(1)[0][0]

    def aliases(self, stem: str) -> tuple[str, ...]:
        """All forms, in the order in which they came."""
        return tuple(self._forms[stem])

    def spans(self, stem: str) -> Sequence[tuple[int, int]]:
        """All places of a noun, in the order of the text."""
        return self._spans[stem]

    def _take_back(self) -> None:
        for word, stem, marked in reversed(self._open):
            self._places.pop()
            self._spans[stem].pop()
            self._marked[stem] = marked
            self._forms[stem][word] -= 1
            if not self._forms[stem][word]:
                del self._forms[stem][word]
        self._open = []

    def _keeps(self, stem: str) -> bool:
        count = len(self._spans[stem])
        return count >= max(1, self._min_count) and self._marked[stem] >= LEAST_SHARE * count

    def _noted(
        self, words: Sequence[re.Match[str]], last: re.Match[str] | None
    ) -> Iterator[tuple[int, str, str, float]]:
        """Where words that may be nouns begin, as written, their stems, and how surely each is
        one."""
        if not words:
            return
        before = self._before
        for match, after in zip(words, [*words[1:], last], strict=True):
            word, earlier, before = match.group(), before, match.group().lower()
            if not word.islower() or word in self._stop or len(word) < LEAST_LETTERS:
                continue
            word = re.sub(r"['’]s?$", "", word)
            mark = 0.0
            if earlier in _BEFORE:
                ends = after is None or _ends(after.group(), self._stop)
                mark = 1.0 if ends else UNSURE
            yield match.start(), word, self._stemmer.stemWord(word), mark


def _ends(after: str, stop: frozenset[str]) -> bool:
    """Whether what follows a word begins something else than the noun that it would belong to."""
    return after.lower() in stop or not after.islower()
