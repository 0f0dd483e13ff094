"""Keys of needles: ``adjective-noun``, drawn as RULER draws them.

RULER sorts all pairs of the two word lists of the package wonderwords and draws one by its place.
There are six million; here the place is resolved without making them.

    >>> keys = Keys(["blue", "blue-eyed"], ["ant", "eye"])
    >>> [keys[place] for place in range(len(keys))]
    ['blue-ant', 'blue-eye', 'blue-eyed-ant', 'blue-eyed-eye']
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from importlib.resources import files
from itertools import accumulate

from mgl.errors import UsageError

__all__ = ["Keys", "wonder_keys"]


class Keys:
    """The sorted distinct pairs of some adjectives and nouns, by place."""

    def __init__(self, adjectives: Sequence[str], nouns: Sequence[str]) -> None:
        self._nouns = sorted(set(nouns))
        self._groups = _groups(sorted({f"{word}-" for word in adjectives}))
        sizes = (
            len(self._nouns if len(heads) == 1 else self._pairs(heads)) for heads in self._groups
        )
        self._ends = list(accumulate(sizes))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, place: int) -> str:
        if not 0 <= place < len(self):
            raise IndexError(place)
        number = bisect_right(self._ends, place)
        within = place - (self._ends[number - 1] if number else 0)
        return self._pairs(self._groups[number])[within]

    def _pairs(self, heads: Sequence[str]) -> list[str]:
        return sorted({head + noun for head in heads for noun in self._nouns})


def _groups(heads: Sequence[str]) -> list[list[str]]:
    """Sorted heads in runs that begin with the run's first: only within one can pairs of different
    heads stand between each other (``blue-`` and ``blue-eyed-``)."""
    groups: list[list[str]] = []
    for head in heads:
        if groups and head.startswith(groups[-1][0]):
            groups[-1].append(head)
        else:
            groups.append([head])
    return groups


def wonder_keys() -> Keys:
    """The keys of RULER; UsageError where wonderwords is not installed."""
    try:
        assets = files("wonderwords") / "assets"
    except ModuleNotFoundError as error:
        raise UsageError(
            "RULER's keys are of the package wonderwords, which is not installed",
            hint="pip install 'mgl[evaluation]'",
        ) from error
    adjectives, nouns = (
        [line.rstrip() for line in (assets / name).read_text("utf-8").splitlines()]
        for name in ("adjectivelist.txt", "nounlist.txt")
    )
    return Keys(adjectives, nouns)
