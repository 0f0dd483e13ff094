"""Find where a quote stands in a text: exactly, up to typography, or nearly.

    >>> text = "She said: “I never—never!—saw him.”"
    >>> locate('I never - NEVER! - saw him', text)
    Located(start=11, end=33, method='normalised', score=1.0)

A quote that leaves words out ("the King … the photograph") is located only if little is left out.
Whether the passage supports a claim is not judged.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

ELLIPSIS = "…"
_DASHES = "\\-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_QUOTES = "\"'‘’‚‛“”„‟«»‹›`´′″ʼ＂＇"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_SPACES = (
    "\t\n\x0b\f\r\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# Whatever does not fold one character to one.
_IRREGULAR = re.compile(
    rf"[\s{_DASHES}{_INVISIBLE}]{{2,}}+"
    rf"|[{_INVISIBLE}]"
    r"|\.(?:[ \u00a0]?\.)++"
    r"|\w[\u0300-\u036f\u3099\u309a]++"
    r"|[\ufb00-\ufb06İ]"
)
_DASH = re.compile(f"[{_DASHES}]")
_SINGLES = {
    **dict.fromkeys(map(ord, _SPACES), " "),
    **dict.fromkeys(map(ord, _DASHES[1:]), "-"),
    **dict.fromkeys(map(ord, _QUOTES), "'"),
    ord("ς"): "σ",
}


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without typographic differences, and the way back to the original's characters.

    Folded are: runs of white space (to one space), dashes and hyphens with the white space around
    them, quotation marks and apostrophes (to one), dots of an ellipsis, case, ligatures, composed
    and decomposed accents; soft hyphens and zero-width characters go. Spelling stays.

    ``begins`` and ``ends`` are where in the original each character of ``text`` comes from.
    """

    text: str
    begins: Sequence[int]
    ends: Sequence[int]

    @classmethod
    def of(cls, text: str) -> Folded:
        """Fold a text, in time linear in its length."""
        parts: list[str] = []
        begins: list[int] = []
        ends: list[int] = []
        position = 0
        for found in chain(_IRREGULAR.finditer(text), [None]):
            start, end = found.span() if found else (len(text), len(text))
            parts.append(_fold_singles(text[position:start]))
            begins += range(position, start)
            ends += range(position + 1, start + 1)
            if found:
                folded = _fold_irregular(found[0])
                parts.append(folded)
                begins += [start] * len(folded)
                ends += [end] * len(folded)
            position = end
        return cls("".join(parts), begins, ends)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Map ``text[start:end]``, not empty, to the original's characters."""
        return self.begins[start], self.ends[end - 1]


def _fold_singles(part: str) -> str:
    return part.lower().translate(_SINGLES)


def _fold_irregular(part: str) -> str:
    if part[0] == ".":
        return ELLIPSIS
    if _DASH.search(part):
        return "-"
    if part.isspace():
        return " "
    if all(character in _INVISIBLE or character.isspace() for character in part):
        return "" if "\u00ad" in part or not any(map(str.isspace, part)) else " "
    return _fold_singles(unicodedata.normalize("NFKC", part).lower())


_SNAP_CHARACTERS = 30
_BOUNDARIES = 12
_MOST_CELLS = 250_000_000
_MOST_TRIES = 1_000_000
_SLACK = 10.0  # points below the floor from which snapping to words may still reach it


@dataclass(frozen=True, slots=True)
class Located:
    """The range of a text that a quote stands for, and their similarity (1.0: equal)."""

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

    A quote is found ``fuzzy`` only if its length times the text's is at most 250 million: a few
    seconds at worst.
    """
    end = len(text) if end is None else end
    if not quote.strip():
        return None
    found = text.find(quote, start, end)
    if found >= 0:
        return Located(found, found + len(quote), "exact", 1.0)
    search = _Search(quote, text[start:end], floor)
    located = search.find_folded() or search.find_fuzzy()
    if located is None:
        return None
    return Located(located.start + start, located.end + start, located.method, located.score)


class _Search:
    def __init__(self, quote: str, window: str, floor: float) -> None:
        self._window = window
        self._floor = floor
        self._folded = Folded.of(window)
        self._wanted = Folded.of(quote).text.strip(" " + ELLIPSIS)

    def find_folded(self) -> Located | None:
        position = self._folded.text.find(self._wanted) if self._wanted else -1
        left = _MOST_TRIES
        while position >= 0 and left > 0:
            left -= len(self._wanted)
            low, high = self._unfold(position, position + len(self._wanted))
            if Folded.of(self._window[low:high]).text == self._wanted:
                return Located(low, high, "normalised", 1.0)
            position = self._folded.text.find(self._wanted, position + 1)
        return None

    def find_fuzzy(self) -> Located | None:
        size, most = len(self._wanted), len(self._folded.text)
        if not 0 < size <= most or size * most > _MOST_CELLS:
            return None
        window = self._find_elided() if ELLIPSIS in self._wanted else self._align()
        if window is None:
            return None
        low, high = self._unfold(*window)
        low = max(_snap_points(self._window, low), key=lambda start: self._similarity(start, high))
        high = max(_snap_points(self._window, high), key=lambda end: self._similarity(low, end))
        score = self._similarity(low, high)
        low, high = _strip(self._window, low, high)
        return Located(low, high, "fuzzy", score) if low < high and score >= self._floor else None

    def _align(self) -> tuple[int, int] | None:
        from rapidfuzz.fuzz import partial_ratio_alignment

        cutoff = max(0.0, self._floor * 100 - _SLACK)
        found = partial_ratio_alignment(self._wanted, self._folded.text, score_cutoff=cutoff)
        if found is None or found.dest_start >= found.dest_end:
            return None
        return found.dest_start, found.dest_end

    def _find_elided(self) -> tuple[int, int] | None:
        """Find the parts of a quote with an ellipsis, in order and with little left out."""
        parts = [part.strip() for part in self._wanted.split(ELLIPSIS)]
        room = int((2 / max(self._floor, 0.5) - 2) * len(self._wanted)) + len(parts)
        text = self._folded.text
        start, left = text.find(parts[0]), _MOST_TRIES
        while start >= 0 and left > 0:
            left -= len(parts)
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

    def _unfold(self, start: int, end: int) -> tuple[int, int]:
        return _strip(self._window, *self._folded.original(start, end))

    def _similarity(self, low: int, high: int) -> float:
        from rapidfuzz.fuzz import ratio

        folded = Folded.of(self._window[low:high]).text.strip()
        return ratio(self._wanted, folded) / 100


def _strip(text: str, low: int, high: int) -> tuple[int, int]:
    """Narrow a range to leave out white space at its ends."""
    words = text[low:high]
    low += len(words) - len(words.lstrip())
    return low, low + len(words.strip())


def _snap_points(text: str, position: int) -> list[int]:
    """List word boundaries around a position, nearest first, and itself where none enclose it."""
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
