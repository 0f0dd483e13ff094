"""Times that a text mentions, as calendar days: ``last week`` said on 8 May 2023 is 1–7 May.

    >>> [mention] = time_mentions("We met last week.", datetime(2023, 5, 8))
    >>> mention.expression, str(mention.begin), str(mention.until)
    ('last week', '2023-05-01', '2023-05-07')

Expressions are found by their English form (``mgl.text.timewords``), and stand for the whole day,
week (ISO 8601, from Monday), month, season (of the northern hemisphere, in whole months; a winter
is called by the year in which it begins) or year; dates are read with python-dateutil.

Ambiguities are decided so: a date without a year, or a month, is the last one, but one that begins
within the next 31 days is the coming one; ``on Friday`` is the last one; ``5/8/2023`` is 8 May; how
long something took is the time up to now. Not read are times of the day, holidays, other languages,
times that are only implied, and parts of longer expressions (``the week before last week``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal, cast

from mgl.text.days import (
    Days,
    Season,
    Unit,
    month,
    nearest_weekday,
    season,
    shift,
    stretch,
    weekend,
)
from mgl.text.timewords import (
    EXPRESSION,
    HALVES,
    MONTHS,
    NUMBERS,
    PARTS,
    VAGUE,
    WEEKDAYS,
    YEAR,
    is_part,
)

__all__ = ["TimeMention", "read_expression", "time_mentions"]

_AHEAD = timedelta(days=31)
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_HAS_YEAR = re.compile(YEAR)
_DIGIT = re.compile(r"\d")
_SPLIT_PERIOD = re.compile(r" (?:and|to|until|till|through) ")
_SPLIT_BEFORE = re.compile(r"(?: just| right| shortly)? (before|prior to|after|following) ")
_PART = re.compile(rf"(?:the )?({'|'.join(PARTS)})(?: of| in)?(?: the)? (.*)")


def read_expression(kind: str, phrase: str, said: date) -> Days:
    """Read an expression (lower case, single spaces) of a kind of ``mgl.text.timewords``.

    Raises ValueError or OverflowError where no calendar has such a day.
    """
    for half, whole in HALVES.items():
        phrase = phrase.replace(half, whole)
    return _READERS[kind](phrase, said)


def _read_date(phrase: str, said: date) -> Days:
    """``8 May 2023``, ``the 3rd of July``, ``June 2022``."""
    if _HAS_YEAR.search(phrase):
        unit: Unit = "day" if _DIGIT.search(_HAS_YEAR.sub("", phrase)) else "month"
        return stretch(_parse(phrase, said.year), unit)
    return _last_or_near(lambda year: stretch(_parse(phrase, year), "day"), said)


def _parse(phrase: str, year: int) -> date:
    from dateutil import parser

    return parser.parse(phrase, default=datetime(year, 1, 1), fuzzy=True).date()


def _last_or_near(in_year: Callable[[int], Days], said: date) -> Days:
    """Find the latest of its kind that begins at most 31 days after ``said``."""
    fault: ValueError | None = None
    for year in range(said.year + 1, said.year - 9, -1):  # eight years for a 29 February
        try:
            days = in_year(year)
        except ValueError as error:
            fault = error
            continue
        if days.first <= said + _AHEAD:
            return days
    raise fault or ValueError(f"no such day in the years before {said}")


def _read_between(phrase: str, said: date) -> Days:
    left, right = _SPLIT_PERIOD.split(phrase.partition(" ")[2], maxsplit=1)
    last = _read_date(right, said)
    if _HAS_YEAR.search(left):
        return Days(_read_date(left, said).first, last.last)
    for year in (last.last.year, last.last.year - 1):
        first = _read_date(f"{left} {year}", said).first
        if first <= last.last:
            break
    return Days(first, last.last)


def _read_before(phrase: str, said: date) -> Days:
    """``the week before 9 June``: the seven days that end on 8 June."""
    what, word, anchor = _SPLIT_BEFORE.split(phrase, maxsplit=1)
    sign = -1 if word in ("before", "prior to") else 1
    anchored = _read_date(anchor, said)
    edge = anchored.first if sign < 0 else anchored.last
    counted = what.removeprefix("the ").removeprefix("last ")
    unit = counted.split()[-1].removesuffix("s")
    if (weekday := _index(unit, WEEKDAYS)) is not None:
        return stretch(nearest_weekday(edge, weekday, sign), "day")
    if unit == "weekend":
        return weekend(nearest_weekday(edge, 6 if sign < 0 else 5, sign))
    low, high = _count(counted)
    if high == 1:
        return _order(edge + sign * _DAY, shift(edge, sign, unit))
    return _away(edge, sign, low, high, unit)


def _read_part(phrase: str, said: date) -> Days:
    found = _PART.fullmatch(phrase.replace("-", " "))
    if found is None:
        raise ValueError(f"{phrase!r} is no part of anything")
    name, rest = found[1], found[2]
    if rest in ("week", "month", "year"):
        whole = stretch(said, cast(Unit, rest))
    elif rest.isdigit():
        whole = stretch(date(int(rest), 1, 1), "year")
    elif _index(rest, MONTHS) is not None:
        whole = _read_month(rest, said)
    elif rest.split()[0] in ("last", "this", "next", "past", "coming"):
        whole = _read_which(rest, said)
    else:
        whole = _read_date(rest, said)
    return whole.part(*PARTS[name])


def _read_season(phrase: str, said: date) -> Days:
    words = phrase.replace(",", " ").replace("fall", "autumn").split()
    if words[-1].isdigit():
        return season(int(words[-1]), cast(Season, words[0]))
    known = [season(year, cast(Season, words[-1])) for year in range(said.year - 2, said.year + 2)]
    if "last" in words or "past" in words:
        return max((days for days in known if days.last < said), key=_first)
    if "next" in words or "coming" in words:
        return min((days for days in known if days.first > said), key=_first)
    now = [days for days in known if days.first <= said <= days.last]
    return now[0] if now else season(said.year, cast(Season, words[-1]))


def _read_weekend(phrase: str, said: date) -> Days:
    words = phrase.split()
    before = weekend(said - _WEEK)
    if "last" in words or "past" in words:
        return before
    if words[0] in ("over", "on", "during") and said.weekday() < 5:
        return before
    return weekend(said + _WEEK) if "next" in words else weekend(said)


def _read_rolling(phrase: str, said: date) -> Days:
    """``in the last three months``: from the day three months ago to today."""
    sign = -1 if re.search(r"\b(?:last|past)\b", phrase) else 1
    counted = re.split(r"\b(?:last|past|next|coming) ", phrase, maxsplit=1)[1]
    _, high = _count(counted)
    unit = counted.split()[-1].removesuffix("s")
    return _order(said, shift(said, sign * high, unit))


def _read_which(phrase: str, said: date) -> Days:
    words = phrase.split()
    what = words[-1]
    sign = _direction(words)
    if what == "night":
        return stretch(said + sign * _DAY, "day")
    if what in ("week", "month", "year", "decade"):
        return stretch(shift(said, sign, what), cast(Unit, what))
    if (weekday := _index(what, WEEKDAYS)) is not None:
        day = nearest_weekday(said, weekday, sign) if sign else _next_weekday(said, weekday)
        return stretch(day, "day")
    number = _month_number(what)
    if sign == 0:
        return month(said.year, number)
    known = [month(year, number) for year in (said.year - 1, said.year, said.year + 1)]
    if sign < 0:
        return max((days for days in known if days.last < said), key=_first)
    return min((days for days in known if days.first > said), key=_first)


def _direction(words: list[str]) -> int:
    if "last" in words or "past" in words:
        return -1
    return 1 if "next" in words or "coming" in words else 0


def _read_ago(phrase: str, said: date) -> Days:
    sign = 1 if phrase.startswith("in ") or phrase.endswith(" from now") else -1
    counted = re.sub(r"^in | (?:ago|back|from now|more)\b", "", phrase)
    low, high = _count(counted)
    return _away(said, sign, low, high, counted.split()[-1].removesuffix("s"))


def _read_lasted(phrase: str, said: date) -> Days:
    counted = re.sub(r" (?:now|already)$", "", phrase)
    _, high = _count(counted)
    return _order(said, shift(said, -high, counted.split()[-1].removesuffix("s")))


def _read_named(phrase: str, said: date) -> Days:
    away: Mapping[str, tuple[int, int]] = {
        "day before yesterday": (-2, -2),
        "day after tomorrow": (2, 2),
        "yesterday": (-1, -1),
        "tomorrow": (1, 1),
        "other day": (-7, -2),
        "other night": (-7, -2),
        "other week": (-21, -7),
    }
    first, last = away.get(phrase.removeprefix("the "), (0, 0))
    return Days(said + first * _DAY, said + last * _DAY)


def _read_month(phrase: str, said: date) -> Days:
    number = _month_number(phrase.split()[-1])
    return _last_or_near(lambda year: month(year, number), said)


def _read_year(phrase: str, _: date) -> Days:
    return stretch(date(int(phrase.split()[-1]), 1, 1), "year")


def _read_on_weekday(phrase: str, said: date) -> Days:
    word, name = phrase.split()
    weekday = WEEKDAYS.index(next(day for day in WEEKDAYS if day.startswith(name[:3])))
    ahead = word in ("by", "until", "till", "for")
    day = _next_weekday(said, weekday) if ahead else nearest_weekday(said, weekday, -1)
    return stretch(day, "day")


def _read_on_the(phrase: str, said: date) -> Days:
    """``on the 15th``: the last day of that number up to now."""
    number = int(re.sub(r"\D", "", phrase))
    day = said
    while day.day != number:
        day -= _DAY
    return Days(day, day)


def _away(said: date, sign: int, low: int, high: int, unit: str) -> Days:
    """Go so many units from a day, and give the whole unit that is reached."""
    near, far = (shift(said, sign * number, unit) for number in (low, high))
    if unit == "weekend":
        ends = weekend(near), weekend(far)
    else:
        whole = cast(Unit, "day" if unit == "night" else unit)
        ends = stretch(near, whole), stretch(far, whole)
    return Days(min(days.first for days in ends), max(days.last for days in ends))


def _next_weekday(said: date, weekday: int) -> date:
    """The next day of that name; today, if it is one."""
    return nearest_weekday(said - _DAY, weekday, 1)


def _count(phrase: str) -> tuple[int, int]:
    """Read how many units are counted, at least and at most: ``a few weeks`` are 2 to 4."""
    words = phrase.replace("-", " ").split()
    for word, vague in VAGUE.items():
        if word in words:
            return vague
    number = sum(int(word) if word.isdigit() else NUMBERS.get(word, 0) for word in words[:-1]) or 1
    return number, number


def _month_number(name: str) -> int:
    found = _index(name, MONTHS)
    if found is None:
        raise ValueError(f"{name!r} is no month")
    return found + 1


def _index(word: str, names: list[str]) -> int | None:
    """Find the name that a word is, or abbreviates."""
    return next(
        (place for place, name in enumerate(names) if len(word) > 2 and name.startswith(word)), None
    )


def _order(one: date, other: date) -> Days:
    return Days(min(one, other), max(one, other))


def _first(days: Days) -> date:
    return days.first


_READERS: Mapping[str, Callable[[str, date], Days]] = {
    "between": _read_between,
    "before": _read_before,
    "part": _read_part,
    "season": _read_season,
    "weekend": _read_weekend,
    "rolling": _read_rolling,
    "which": _read_which,
    "ago": _read_ago,
    "lasted": _read_lasted,
    "date": _read_date,
    "named": _read_named,
    "month": _read_month,
    "year": _read_year,
    "weekday": _read_on_weekday,
    "monthday": _read_on_the,
}


_ANY_DAY = date(2000, 1, 1)


@dataclass(frozen=True, slots=True)
class TimeMention:
    """The days that ``text[start:end]`` (``expression``) means, ``begin`` to ``until`` inclusive.

    ``kind`` is ``duration`` where the words say how long something took, ``time`` where they say
    when it was.
    """

    expression: str
    start: int
    end: int
    begin: date
    until: date
    kind: Literal["time", "duration"] = "time"


def time_mentions(text: str, at: datetime | date | None) -> list[TimeMention]:
    """Find the times that a text mentions, in order and without overlap.

    ``at`` is when it was said, in the speaker's own time; without it (None), only expressions with
    a year are read.
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
