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
from collections import Counter, defaultdict
from typing import Final

from mgl.text.names import Name

__all__ = ["find_nouns"]

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
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
    import Stemmer
    from bm25s.stopwords import STOPWORDS_EN

    stop = frozenset(STOPWORDS_EN)
    stemmer = Stemmer.Stemmer("english")
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    marked: defaultdict[str, float] = defaultdict(float)
    found = list(_WORD.finditer(text))
    for match, before, after in zip(found, [None, *found], [*found[1:], None], strict=False):
        word = match.group()
        if not word.islower() or word in stop or len(word) < LEAST_LETTERS:
            continue
        word = re.sub(r"['’]s?$", "", word)
        stem = stemmer.stemWord(word)
        places[stem].append((match.start(), match.start() + len(word)))
        forms[stem][word] += 1
        if before is not None and before.group().lower() in _BEFORE:
            marked[stem] += 1.0 if after is None or _ends(after.group(), stop) else UNSURE
    nouns = [
        Name(forms[stem].most_common(1)[0][0], tuple(forms[stem]), tuple(spans))
        for stem, spans in places.items()
        if len(spans) >= min_count and marked[stem] >= LEAST_SHARE * len(spans)
    ]
    return sorted(nouns, key=lambda noun: (-len(noun.spans), noun.spans))


def _ends(after: str, stop: frozenset[str]) -> bool:
    """Whether what follows a word begins something else than the noun that it would belong to."""
    return after.lower() in stop or not after.islower()
