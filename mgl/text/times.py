"""Times that a text speaks of, as calendar days: ``last week`` said on 8 May 2023 is 1–7 May.

    >>> [mention] = time_mentions("We met last week.", datetime(2023, 5, 8))
    >>> mention.expression, str(mention.begin), str(mention.until)
    ('last week', '2023-05-01', '2023-05-07')

Expressions are found by their English form (``mgl.text.timewords``) and read with python-dateutil;
an expression stands for the whole day, week, month, season or year that was meant.

What the words leave open is decided so: a date without a year, or a month, is the last one that
was, but one that begins within the next 31 days is the coming one; ``on Friday`` is the last one;
``5/8/2023`` is 8 May; how long something took is taken as the time up to now. Times of the day,
holidays and other languages are not known, and nothing is told of times that a text only implies.
Nor is it of a part of an expression that is not known as a whole (``the week before last week``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from mgl.text.timereading import read_expression
from mgl.text.timewords import EXPRESSION, YEAR, is_part

__all__ = ["TimeMention", "time_mentions"]

_ANY_DAY = date(2000, 1, 1)
_HAS_YEAR = re.compile(YEAR)


@dataclass(frozen=True, slots=True)
class TimeMention:
    """The days that ``text[start:end]`` (``expression``) speaks of, from ``begin`` to ``until``.

    Both days belong to it. ``kind`` is ``duration`` where the words say how long something took,
    ``time`` where they say when it was.
    """

    expression: str
    start: int
    end: int
    begin: date
    until: date
    kind: Literal["time", "duration"] = "time"


def time_mentions(text: str, at: datetime | date | None) -> list[TimeMention]:
    """The times that a text speaks of, in its order; none overlap.

    ``at`` is when it was said, in the speaker's own time; where that is not known (None), only
    expressions with a year are read.
    """
    said = at.date() if isinstance(at, datetime) else at
    whole = (found for found in EXPRESSION.finditer(text) if not is_part(found))
    mentions = (_mention(found, said) for found in whole)
    return [mention for mention in mentions if mention is not None]


def _mention(found: re.Match[str], said: date | None) -> TimeMention | None:
    kind = found.lastgroup or ""
    phrase = " ".join(found[0].lower().split())
    if said is None and not _HAS_YEAR.search(phrase):
        return None
    try:
        days = read_expression(kind, phrase, said or _ANY_DAY)
    except (OverflowError, ValueError):  # a day that no calendar has
        return None
    return TimeMention(
        found[0],
        found.start(),
        found.end(),
        days.first,
        days.last,
        "duration" if kind == "lasted" else "time",
    )
