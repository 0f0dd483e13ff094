"""What scores of words have in common: F1 of counts, and words that stand in others together."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["f1", "stands_in"]


def f1(common: int, said: int, wanted: int) -> float:
    """F1 of ``common`` words among ``said`` and ``wanted``, 0 to 1; 0 where none is common."""
    return 2 * common / (said + wanted) if common else 0.0


def stands_in(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether some words, of which there is at least one, stand in others together and in order."""
    size, wanted = len(part), list(part)
    return size > 0 and any(
        list(whole[start : start + size]) == wanted for start in range(len(whole) - size + 1)
    )
