"""English expressions of time: which words they are made of, as one pattern of named kinds.

    >>> EXPRESSION.search("We met two weeks ago.").lastgroup
    'ago'

Short names (``May``, ``Sun``) count with their capital only. What an expression means is the
business of ``mgl.text.times``.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["EXPRESSION", "MONTHS", "NUMBERS", "PARTS", "SEASON_WORDS", "VAGUE", "WEEKDAYS", "YEAR"]

MONTHS: Final = (
    "january february march april may june july august september october november december".split()
)
WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
NUMBERS: Final = {
    word: value
    for value, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty".split(),
        start=1,
    )
} | {"a": 1, "an": 1}
VAGUE: Final = {"couple": (2, 3), "few": (2, 4), "several": (3, 7)}
"""How many are meant, at least and at most."""
SEASON_WORDS: Final = ("spring", "summer", "autumn", "fall", "winter")
PARTS: Final = {
    "first half": (0, 2), "second half": (1, 2),
    "first week": (0, 4), "second week": (1, 4), "third week": (2, 4), "fourth week": (3, 4),
    "last week": (3, 4),
    "early": (0, 3), "beginning": (0, 3), "start": (0, 3),
    "mid": (1, 3), "middle": (1, 3),
    "late": (2, 3), "end": (2, 3),
}  # fmt: skip
"""Which part of how many, counted from 0."""


def _any(*words: str) -> str:
    return f"(?:{'|'.join(words)})"


_SHORT_MONTHS = _any(*(f"{word[:3].title()}" for word in MONTHS), "Sept")
_PLAIN_MONTHS = _any(*(word for word in MONTHS if word not in ("march", "may")))
_MONTH = rf"(?:(?-i:March|{_SHORT_MONTHS}\b)|{_PLAIN_MONTHS})"
_SHORT_DAYS = _any("Mon", "Tues?", "Wed", "Thu(?:rs?)?", "Fri", "Sat", "Sun")
_WEEKDAY = rf"(?:{_any(*WEEKDAYS)}\b|(?-i:{_SHORT_DAYS})\b)"
YEAR: Final = r"(?:19|20)\d\d\b"
_NUMBER = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_DAY = rf"{_NUMBER}\b"
_MONTH_DAY = rf"(?:(?:the )?{_NUMBER}(?: of | )?{_MONTH}\.?|{_MONTH}\.? (?:the )?{_DAY})"
_IN_NUMBERS = rf"(?:\d{{4}}-\d\d?-\d\d?|\d\d?/\d\d?/{YEAR})"
_DATE = rf"(?:{_IN_NUMBERS}|{_MONTH_DAY}(?:,? {YEAR})?|{_MONTH},? (?:of )?{YEAR})"
_MONTH_OR_DATE = rf"(?:{_DATE}|{_MONTH})"
_COUNT = rf"(?:\d{{1,3}}|{_any(*NUMBERS)}|(?:a )?(?:couple(?: of)?|few)|several)"
_UNIT = r"(?:day|night|week|weekend|month|year|decade)"
_ABOUT = r"(?:(?:about|around|almost|over|nearly|only|just|under|like|the|past|last|at least) )*"
_WHICH = r"(?:last|next|this past|this coming|this|past|coming)"
_SEASON = _any(*SEASON_WORDS)
_BEFORE = r"(?:just |right |shortly )?(?:before|after|prior to|following)"
_NO_NOUN = r"(?=\s*(?:[.,!?;:)]|$)| (?:and|at|in|with|for|after|before|to|but)\b)"
"""What follows a day of the month; a noun would make it ``the 15th floor``."""

_KINDS = {
    "between": rf"(?:between|from) {_MONTH_OR_DATE} (?:and|to|until|till|through) {_DATE}",
    "before": rf"(?:(?:the |last |{_COUNT} )?(?:{_UNIT}s?|{_WEEKDAY})) {_BEFORE} {_DATE}",
    "part": rf"(?:(?:early|mid|late)(?: in)?|(?:the )?{_any(*PARTS)} (?:of|in))(?: the| {_WHICH})?"
    rf"(?: |-)(?:{_MONTH_OR_DATE}|week|month|year|{YEAR})",
    "season": rf"(?:{_WHICH} {_SEASON}|{_SEASON}(?: of|,)? {YEAR})",
    "weekend": rf"(?:{_WHICH}|over the|on the|for the|at the|during the|the) weekend",
    "rolling": rf"(?:(?:in|over|during|for|within) the (?:last|past|next|coming)(?: {_COUNT})? "
    rf"{_UNIT}s?|(?:the )?(?:last|past|next) {_COUNT} {_UNIT}s?)",
    "which": rf"{_WHICH} (?:night|week|month|year|decade|{_WEEKDAY}|{_MONTH})",
    "ago": rf"{_COUNT} (?:more )?{_UNIT}s? (?:ago|back|from now)|in {_ABOUT}{_COUNT} {_UNIT}s?",
    "lasted": rf"(?:for|been) {_ABOUT}{_COUNT} {_UNIT}s?(?! old)|{_COUNT} {_UNIT}s (?:now|already)",
    "date": _DATE,
    "named": r"(?:the )?day (?:before yesterday|after tomorrow)|yesterday|today|tonight|tomorrow"
    r"|this (?:morning|afternoon|evening)|the other (?:day|night|week)",
    "month": rf"(?:in|since|by|during|of|from|around|until|till|through) {_MONTH}"
    rf"(?!,? (?:of )?{YEAR}|\.? (?:the )?{_DAY})",
    "year": rf"(?:in|since|by|during|of|from|around|until|till|before|after) {YEAR}",
    "weekday": rf"(?:on|since|by|until|till|for) {_WEEKDAY}",
    "monthday": rf"on the (?:[12]?[1-9]|[123]0|31)(?:st|nd|rd|th){_NO_NOUN}",
}

EXPRESSION: Final = re.compile(
    r"(?<![\w'’])(?<!\d[.,])(?:"
    + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()).replace(" ", r"\s+")
    + r")(?!\w)",
    re.IGNORECASE,
)
