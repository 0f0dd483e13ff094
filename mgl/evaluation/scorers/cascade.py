"""The sure steps of MindGraph's cascade, which decide that an answer is right before a judge is
asked.

Source: MindGraph D.4: exact match, normalised number, containment, first-sentence containment,
key-phrase token-F1 ≥ 0.5. The paper names the steps but prints no rules. A gold answer that stands
in a reply may be denied there, doubted, or be part of another ("He denied that he killed her", "the
wife of the king", "hardly happy"), and no list of words tells. So two steps are left, and all else
is for a judge:

1. exact: the same words, whatever case, punctuation, articles and ways to write a number; the
   parts of a date in any order
2. whole: the same after "It was", "The answer is" and the like, and after "in", "on" or "at"

The words of the second step, of dates and of numbers are English.

    >>> cascade("It was in Rome.", ["Rome"])
    'whole'
    >>> cascade("He refused to go to Rome.", ["Rome"]) is None
    True
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal

from mgl.text.timewords import MONTHS, ONES

Step = Literal["exact", "whole"]

_FRAME: Final = re.compile(
    r"^(?:(?:(?:the|my) answer is|(?:it|this|that|there) (?:is|was|are|were)|it['’]s)\b[\s:]*)?"
    r"(?:(?:in|on|at)\s)?",
    re.IGNORECASE,
)
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d\d\d)")
_NO_SIGN: Final = re.compile(r"(?<!\d)\.|\.(?!\d)|(?<=\w)-|-(?!\d)")
_ORDINAL: Final = re.compile(r"(?<=\d)(?:st|nd|rd|th)$")
_TELLING: Final = "$€£%?.-"  # marks that make another answer of the same words
_ARTICLES: Final = frozenset(("a", "an", "the"))
_NUMBERS: Final = {word: str(value) for value, word in enumerate(["zero", *ONES, "twenty"])}


def cascade(prediction: str, golds: Sequence[str]) -> Step | None:
    """Return the step at which the prediction is surely right, or None."""
    wanted = [words for gold in golds if (words := _fold(gold))]
    if _fold(prediction) in wanted:
        return "exact"
    return "whole" if _fold(_FRAME.sub("", prediction.strip(), count=1)) in wanted else None


def _fold(text: str) -> list[str]:
    """The words as they are compared; those of a date are sorted."""
    plain = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold())
    kept = (
        char if char in _TELLING or unicodedata.category(char)[0] in "LMN" else " "
        for char in _NO_SIGN.sub(" ", plain)
    )
    words = [_NUMBERS.get(word, word) for word in "".join(kept).split() if word not in _ARTICLES]
    parts = [_ORDINAL.sub("", word) for word in words]
    is_date = all(part in MONTHS or part.isdigit() for part in parts)
    return sorted(parts) if is_date and not {*MONTHS}.isdisjoint(parts) else words
