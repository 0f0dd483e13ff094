"""Where a conversation changes its subject: two detectors without a model, and scores for any."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_GREETING = re.compile(
    r"\W*(hey|hi|hello|good (morning|afternoon|evening)|what's up|howdy|greetings)\b", re.IGNORECASE
)
_FIRST_SENTENCE = re.compile(r"[^.!?]*[.!?]+\s+(?=\S)")


def greetings(texts: Sequence[str]) -> list[int]:
    """Boundaries before each turn that greets, the first where two greet in a row."""
    greets = [bool(_GREETING.match(text)) for text in texts]
    return [n - 1 for n in range(1, len(texts)) if greets[n] and not greets[n - 1]]


def drop_greetings(texts: Sequence[str]) -> list[str]:
    """The texts without their first sentence, where that greets; a text of it alone stays."""
    return [
        text[match.end() :]
        if _GREETING.match(text) and (match := _FIRST_SENTENCE.match(text))
        else text
        for text in texts
    ]


def valleys(vectors: NDArray[np.float32], *, window: int = 6) -> list[int]:
    """Boundaries where the turns before and after are least alike.

    ``vectors`` (n, dims) are the turns'. At each gap the ``window`` turns on either side are
    likened; a gap is a boundary where that is a local minimum whose depth below the peaks around it
    is more than the mean depth less half its standard deviation.
    """
    sums = np.vstack([np.zeros(vectors.shape[1]), vectors.cumsum(axis=0)])
    likeness = np.array([_alike(sums, gap, window) for gap in range(1, len(vectors))])
    depths = np.array([_depth(likeness, place) for place in range(len(likeness))])
    lowest = [
        place
        for place in range(len(likeness))
        if likeness[place] == likeness[max(0, place - 1) : place + 2].min() and depths[place] > 0
    ]
    if not lowest:
        return []
    enough = depths[lowest].mean() - depths[lowest].std() / 2
    return [place for place in lowest if depths[place] > enough]


def _alike(sums: NDArray[np.float64], gap: int, window: int) -> float:
    before = sums[gap] - sums[max(0, gap - window)]
    after = sums[min(len(sums) - 1, gap + window)] - sums[gap]
    return float(before @ after / (np.linalg.norm(before) * np.linalg.norm(after) + 1e-12))


def _depth(likeness: NDArray[np.float64], place: int) -> float:
    """How far a gap lies below the nearest peak to its left and to its right, together."""
    left = right = place
    while left > 0 and likeness[left - 1] >= likeness[left]:
        left -= 1
    while right < len(likeness) - 1 and likeness[right + 1] >= likeness[right]:
        right += 1
    return float(likeness[left] + likeness[right] - 2 * likeness[place])


@dataclass(frozen=True, slots=True)
class BoundaryScores:
    """``matched`` of ``found`` boundaries are among the ``gold`` ones; sums of them can be added.

    Where nothing was found and there was nothing to find, all shares are 1.
    """

    matched: int
    found: int
    gold: int

    @property
    def precision(self) -> float:
        return self.matched / self.found if self.found else float(self.gold == 0)

    @property
    def recall(self) -> float:
        return self.matched / self.gold if self.gold else float(self.found == 0)

    @property
    def f1(self) -> float:
        both = self.found + self.gold
        return 2 * self.matched / both if both else 1.0

    def __add__(self, other: BoundaryScores) -> BoundaryScores:
        return BoundaryScores(
            self.matched + other.matched, self.found + other.found, self.gold + other.gold
        )


def boundary_scores(
    found: Iterable[int], gold: Iterable[int], tolerance: int = 1
) -> BoundaryScores:
    """Boundaries are turn numbers; two match where they are at most ``tolerance`` turns apart.

    Each counts for one of the other side: the matching is the largest that there is.
    """
    ours, theirs = sorted(set(found)), sorted(set(gold))
    matched = place = 0
    for boundary in ours:
        while place < len(theirs) and theirs[place] < boundary - tolerance:
            place += 1
        if place < len(theirs) and theirs[place] <= boundary + tolerance:
            matched += 1
            place += 1
    return BoundaryScores(matched, len(ours), len(theirs))
