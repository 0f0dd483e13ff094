"""When a fact held, from the words that a model gives for it.

    >>> moment("last week", datetime(2023, 5, 8, 13, 56))
    datetime.datetime(2023, 5, 1, 0, 0)
    >>> moment("31 February 2023", None) is None
    True

Words are read by ``mgl.text.times`` against the time at which they were said; a fact begins with
the first day that is meant, and ends with the last.
"""

from __future__ import annotations

import re
from datetime import datetime, time
from typing import Final

from mgl.text.times import time_mentions

__all__ = ["moment", "says_nothing"]

_NOTHING: Final = frozenset({"", "none", "null", "n/a", "na", "unknown", "not stated", "..."})
_YEAR: Final = re.compile(r"\d{4}")
_MOST_CHARS: Final = 200


def says_nothing(said: str | None) -> bool:
    """Whether there are no words for a time."""
    return said is None or said.strip().strip(".").casefold() in _NOTHING


def moment(said: str, at: datetime | None, *, end: bool = False) -> datetime | None:
    """The first day of the time that words speak of, or with ``end`` the last; None where they
    cannot be read, or mean a day that no calendar has.

    ``at`` is when they were said: what they mean is in its zone, if it has one.
    """
    words = said.strip()[:_MOST_CHARS]
    zone = None if at is None else at.tzinfo
    if _YEAR.fullmatch(words):
        words = f"in {words}"
    mentions = time_mentions(words, at)
    if mentions:
        day = mentions[0].until if end else mentions[0].begin
        return datetime.combine(day, time(), zone)
    try:
        read = datetime.fromisoformat(words)
    except ValueError:
        return None
    return read if read.tzinfo is not None else read.replace(tzinfo=zone)
