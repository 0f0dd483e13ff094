"""Text without the differences that do not matter to a quote, and the way back to the original.

    >>> folded = Folded.of("The  King—\\n“Sherlock”")
    >>> folded.text
    "the king-'sherlock'"
    >>> folded.original(4, 8)
    (5, 9)

Folded are: runs of white space (to one space), dashes and hyphens with the white space around
them, quotation marks and apostrophes (to one), dots of an ellipsis, case, ligatures, composed
and decomposed accents; soft hyphens and zero-width characters go. Spelling stays.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass

__all__ = ["ELLIPSIS", "Folded"]

ELLIPSIS = "…"
_DASHES = "\\-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_QUOTES = "\"'‘’‚‛“”„‟«»‹›`´′″ʼ＂＇"
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_SPACES = (
    "\t\n\x0b\f\r\x1c\x1d\x1e\x1f\x85\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# Everything that does not fold to exactly one character for one.
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
    """A folded text and, piece by piece, which characters of the original it comes from.

    ``starts`` are positions in ``text``, ``sources`` the matching ones in the original, with the
    original's length at the end; ``whole`` marks pieces that can only be taken as a whole.
    """

    text: str
    starts: tuple[int, ...]
    sources: tuple[int, ...]
    whole: tuple[bool, ...]

    @classmethod
    def of(cls, text: str) -> Folded:
        """Fold a text, in time linear in its length."""
        parts: list[str] = []
        starts: list[int] = []
        sources: list[int] = []
        whole: list[bool] = []
        length = position = 0

        def add(part: str, source: int, irregular: bool) -> None:
            nonlocal length
            parts.append(part)
            starts.append(length)
            sources.append(source)
            whole.append(irregular)
            length += len(part)

        for found in _IRREGULAR.finditer(text):
            if found.start() > position:
                add(_fold_singles(text[position : found.start()]), position, False)
            add(_fold_irregular(found[0]), found.start(), True)
            position = found.end()
        if position < len(text):
            add(_fold_singles(text[position:]), position, False)
        return cls("".join(parts), tuple(starts), (*sources, len(text)), tuple(whole))

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the original that ``text[start:end]`` (not empty) comes from."""
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, end - 1) - 1
        low = self.sources[first] + (0 if self.whole[first] else start - self.starts[first])
        if self.whole[last]:
            return low, self.sources[last + 1]
        return low, self.sources[last] + end - self.starts[last]


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
