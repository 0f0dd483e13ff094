"""Where a conversation may be cut without a language model: what one has to beat.

    >>> greetings(["Bye!", "Hi Ann!", "Hey Bo!", "I got a job."])
    [0]

A boundary is the number of the turn after which it lies. Sources: Hearst, TextTiling
(Computational Linguistics 1997) for depths and their cut-off; the greetings are ours, in English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["greetings", "valleys"]

_GREETING = re.compile(
    r"\W*(hey|hi|hello|good (morning|afternoon|evening)|what's up|howdy|greetings)\b", re.IGNORECASE
)


def greetings(texts: Sequence[str]) -> list[int]:
    """Boundaries before each turn that greets, the first where two greet in a row."""
    greets = [bool(_GREETING.match(text)) for text in texts]
    return [n - 1 for n in range(1, len(texts)) if greets[n] and not greets[n - 1]]


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
