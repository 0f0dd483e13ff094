"""English expressions of time: which words they are made of, as one pattern of named kinds.

    >>> [found.lastgroup for found in find_expressions("We met two weeks ago.")]
    ['ago']

Short names (``May``, ``Sun``) count in capitals only. ``mgl.text.times`` reads what is found. The
pattern takes long to compile, so it waits for the first text that may match.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

MONTHS: Final = (
    "january february march april may june july august september october november december".split()
)
WEEKDAYS: Final = "monday tuesday wednesday thursday friday saturday sunday".split()
ONES: Final = (
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen".split()
)
TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_NUMBERS: Final = {
    **{word: value for value, word in enumerate(ONES, start=1)},
    **{word: 10 * value for value, word in enumerate(TENS, start=2)},
    "a": 1,
    "an": 1,
}
"""Words that add up to a number."""
_VAGUE: Final = {"couple": (2, 3), "few": (2, 4), "several": (3, 7)}
"""Vague numbers: at least and at most."""
DAYS_AWAY: Final = {
    "day before yesterday": (-2, -2),
    "day after tomorrow": (2, 2),
    "yesterday": (-1, -1),
    "tomorrow": (1, 1),
    "other day": (-7, -2),
    "other night": (-7, -2),
    "other week": (-21, -7),
}
"""Days from today, first and last; whatever is not here is today."""
PARTS: Final = {
    "first half": (0, 2), "second half": (1, 2),
    "first week": (0, 4), "second week": (1, 4), "third week": (2, 4), "fourth week": (3, 4),
    "last week": (3, 4),
    "early": (0, 3), "beginning": (0, 3), "start": (0, 3),
    "mid": (1, 3), "middle": (1, 3),
    "late": (2, 3), "end": (2, 3),
}  # fmt: skip
"""Which part, counted from 0, of how many."""


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
MONTH_DAY: Final = rf"(?:(?:the )?{_NUMBER}(?: of | )?{_MONTH}\.?|{_MONTH}\.? (?:the )?{_DAY})"
_IN_NUMBERS = rf"(?:\d{{4}}-\d\d?-\d\d?|\d\d?/\d\d?/{YEAR})"
_DATE = rf"(?:{_IN_NUMBERS}|{MONTH_DAY}(?:,? {YEAR})?|{_MONTH},? (?:of )?{YEAR})"
_MONTH_OR_DATE = rf"(?:{_DATE}|{_MONTH})"
_IN_WORDS = rf"(?:{_any(*TENS)}(?:(?:-| ){_any(*ONES[:9])})?|{_any(*ONES, 'an?')})"
_COUNT = rf"(?:\d{{1,3}}|{_IN_WORDS}|(?:a )?(?:couple(?: of)?|few)|several)"
_UNIT = r"(?:day|night|week|weekend|month|year|decade)"
_AMOUNT = rf"{_COUNT} {_UNIT}s?"
_ABOUT = r"(?:(?:about|around|almost|over|nearly|only|just|under|like|the|past|last|at least) )*"
_WHICH = r"(?:last|next|this past|this coming|this|past|coming)"
_SEASON = _any("spring", "summer", "autumn", "fall", "winter")
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
    "ago": rf"(?:{_AMOUNT}|{_COUNT} more {_UNIT}s?) (?:ago|back|from now)|in {_ABOUT}{_AMOUNT}",
    "lasted": rf"(?:for|been) {_ABOUT}{_AMOUNT}(?! old)|{_COUNT} {_UNIT}s (?:now|already)",
    "date": _DATE,
    "named": r"(?:the )?day (?:before yesterday|after tomorrow)|yesterday|today|tonight|tomorrow"
    r"|this (?:morning|afternoon|evening)|the other (?:day|night|week)",
    "month": rf"(?:in|since|by|during|of|from|around|until|till|through) {_MONTH}"
    rf"(?!,? (?:of )?{YEAR}|\.? (?:the )?{_DAY})",
    "year": rf"(?:in|since|by|during|of|from|around|until|till|before|after) {YEAR}",
    "weekday": rf"(?:on|since|by|until|till|for) {_WEEKDAY}",
    "monthday": rf"on the (?:[12]?[1-9]|[123]0|31)(?:st|nd|rd|th){_NO_NOUN}",
}

_WHEN = rf"(?:{_UNIT}|{_SEASON}|{_any(*WEEKDAYS)}|morning|afternoon|evening|fortnight)s?"
_RECKONED = (
    rf"{_WHEN} {_BEFORE} \S",
    rf"{_WHEN} from (?!{_MONTH_OR_DATE} (?:and|to|until|till|through) )\S",
    rf"{_UNIT}s? ago (?:today|yesterday|(?:on )?(?:{_WHICH}|{_WEEKDAY})|in {_MONTH}(?!,? {YEAR}))",
)
"""Amounts reckoned from another time: ``two days before yesterday``."""
_LONGER = (
    rf"{_AMOUNT}(?:(?:(?:,? and|,) {_COUNT}| \d{{1,3}}) {_UNIT}s?)+",
    rf"{_COUNT} (?:or|to) {_COUNT} {_UNIT}",
    rf"(?:hundred|thousand|point)(?: and)? {_COUNT} {_UNIT}",
    rf"(?:half|third|quarter)s?(?: of)?(?: {_COUNT})? {_UNIT}|\d/\d+ {_UNIT}",
    rf"{_UNIT}s? and a half\b|{_WHEN} (?:before last|after next)\b|the weekend {_BEFORE}\b",
)
"""Expressions that no kind reads, though a part of them would be."""
_NEAR: Final = 60  # characters on either side
_JOINED: Final = re.compile(r"\w[-‐‑–]")


def find_name(word: str, names: Sequence[str]) -> int | None:
    """Find the name that a word is, or abbreviates."""
    return next(
        (place for place, name in enumerate(names) if len(word) > 2 and name.startswith(word)), None
    )


def count_units(phrase: str) -> tuple[int, int, str]:
    """Read the unit and how many of it at least and at most: ``a few weeks`` are 2 to 4."""
    words = phrase.replace("-", " ").split()
    unit = words[-1].removesuffix("s")
    for word, (low, high) in _VAGUE.items():
        if word in words:
            return low, high, unit
    number = sum(int(word) if word.isdigit() else _NUMBERS.get(word, 0) for word in words[:-1]) or 1
    return number, number, unit


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)


_HINT: Final = _compile(
    rf"\b(?:\d|{'|'.join(name[:3] for name in (*MONTHS, *WEEKDAYS))}|{_SEASON}|{_UNIT}"
    r"|yesterday|today|tonight|tomorrow|morning|afternoon|evening)"
)
"""Every expression holds one of these."""


def find_expressions(text: str) -> Iterator[re.Match[str]]:
    """Find the expressions of time in a text, in order and without overlap; ``lastgroup`` is the
    kind of each."""
    return _expression().finditer(text) if _HINT.search(text) else iter(())


@cache
def _expression() -> re.Pattern[str]:
    kinds = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items())
    return _compile(rf"(?<![\w'’])(?<!\d[.,])(?:{kinds})(?!\w)")


@cache
def _longer() -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The patterns that begin a longer expression, and those of whole ones."""
    return tuple(
        tuple(_compile(rf"\b(?:{pattern})") for pattern in patterns)
        for patterns in (_RECKONED, _LONGER)
    )


def is_part(found: re.Match[str]) -> bool:
    """Whether an expression is a part of an unknown longer one, and so means another time.

    ``two months ago`` does in ``a year and two months ago``.
    """
    text, (start, end) = found.string, found.span()
    if start > 1 and _JOINED.match(text, start - 2):
        return True

    def across(place: int, patterns: Sequence[re.Pattern[str]]) -> bool:
        near = max(0, start - _NEAR), end + _NEAR
        longer = (match for pattern in patterns for match in pattern.finditer(text, *near))
        return any(match.start() < place < match.end() for match in longer)

    beginnings, wholes = _longer()
    return across(start, beginnings + wholes) or across(end, wholes)
