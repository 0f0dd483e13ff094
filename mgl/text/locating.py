"""Where a quote stands in a text: exactly, else but for typography, else nearly.

    >>> text = "She said: “I never—never!—saw him.”"
    >>> locate('I never - NEVER! - saw him', text)
    Located(start=11, end=33, method='normalised', score=1.0)

A quote that leaves words out ("the King … the photograph") is one passage only if little is left
out; else it is not located. It does not judge whether the passage supports a claim.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mgl.text.normalise import ELLIPSIS, Folded

__all__ = ["Located", "locate"]

_SNAP_CHARACTERS = 30
_BOUNDARIES = 12
_SLACK = 10.0  # points below the floor at which a window is still worth snapping to words


@dataclass(frozen=True, slots=True)
class Located:
    """The range of a text that a quote stands for, and how alike they are (1.0: the same)."""

    start: int
    end: int
    method: Literal["exact", "normalised", "fuzzy"]
    score: float


def locate(
    quote: str, text: str, start: int = 0, end: int | None = None, *, floor: float = 0.9
) -> Located | None:
    """Find a quote in ``text[start:end]``; offsets are those of ``text``.

    ``exact`` is the first verbatim occurrence. ``normalised`` differs in white space, quotation
    marks, dashes, case, or an ellipsis at an end. ``fuzzy`` reaches from word to word and is at
    least ``floor`` alike (Indel similarity of the folded texts, 0 to 1). None if nothing does.
    """
    end = len(text) if end is None else end
    if not quote.strip():
        return None
    found = text.find(quote, start, end)
    if found >= 0:
        return Located(found, found + len(quote), "exact", 1.0)
    search = _Search(quote, text[start:end], floor)
    located = search.normalised() or search.fuzzy()
    if located is None:
        return None
    return Located(located.start + start, located.end + start, located.method, located.score)


class _Search:
    def __init__(self, quote: str, window: str, floor: float) -> None:
        self._window = window
        self._floor = floor
        self._folded = Folded.of(window)
        self._wanted = Folded.of(quote).text.strip(" " + ELLIPSIS)

    def normalised(self) -> Located | None:
        position = self._folded.text.find(self._wanted) if self._wanted else -1
        while position >= 0:
            low, high = self._trimmed(position, position + len(self._wanted))
            if Folded.of(self._window[low:high]).text == self._wanted:
                return Located(low, high, "normalised", 1.0)
            position = self._folded.text.find(self._wanted, position + 1)
        return None

    def fuzzy(self) -> Located | None:
        if not self._wanted or len(self._wanted) > len(self._folded.text):
            return None
        window = self._spliced() if ELLIPSIS in self._wanted else self._aligned()
        if window is None:
            return None
        low, high = self._trimmed(*window)
        low = max(_near(self._window, low), key=lambda start: self._alike(start, high))
        high = max(_near(self._window, high), key=lambda end: self._alike(low, end))
        score = self._alike(low, high)
        low, high = _bare(self._window, low, high)
        return Located(low, high, "fuzzy", score) if low < high and score >= self._floor else None

    def _aligned(self) -> tuple[int, int] | None:
        from rapidfuzz.fuzz import partial_ratio_alignment

        cutoff = max(0.0, self._floor * 100 - _SLACK)
        found = partial_ratio_alignment(self._wanted, self._folded.text, score_cutoff=cutoff)
        if found is None or found.dest_start >= found.dest_end:
            return None
        return found.dest_start, found.dest_end

    def _spliced(self) -> tuple[int, int] | None:
        """The parts of a quote with an ellipsis, in order and with no more left out than fits."""
        parts = [part.strip() for part in self._wanted.split(ELLIPSIS)]
        room = int((2 / max(self._floor, 0.5) - 2) * len(self._wanted)) + len(parts)
        text = self._folded.text
        start = text.find(parts[0])
        while start >= 0:
            end = start + len(parts[0])
            for part in parts[1:]:
                found = text.find(part, end, end + room + len(part))
                if found < 0:
                    break
                end = found + len(part)
            else:
                return start, end
            start = text.find(parts[0], start + 1)
        return None

    def _trimmed(self, start: int, end: int) -> tuple[int, int]:
        return _bare(self._window, *self._folded.original(start, end))

    def _alike(self, low: int, high: int) -> float:
        from rapidfuzz.fuzz import ratio

        folded = Folded.of(self._window[low:high]).text.strip()
        return ratio(self._wanted, folded) / 100


def _bare(text: str, low: int, high: int) -> tuple[int, int]:
    """The range without white space at its ends."""
    words = text[low:high]
    low += len(words) - len(words.lstrip())
    return low, low + len(words.strip())


def _near(text: str, position: int) -> list[int]:
    """Word boundaries around a position, nearest first; itself too unless it cuts a word."""
    reach = range(-_SNAP_CHARACTERS, _SNAP_CHARACTERS + 1)
    places = [position + step for step in reach if 0 <= position + step <= len(text)]
    found = [place for place in places if _is_boundary(text, place)]
    if not (found and found[0] <= position <= found[-1]):
        found.append(position)
    return sorted(found, key=lambda place: abs(place - position))[:_BOUNDARIES]


def _is_boundary(text: str, position: int) -> bool:
    if position <= 0 or position >= len(text):
        return True
    return not (_in_word(text[position - 1]) and _in_word(text[position]))


def _in_word(character: str) -> bool:
    return character.isalnum() or "\u0300" <= character <= "\u036f"
