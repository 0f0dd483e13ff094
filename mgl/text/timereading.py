"""What an expression of time means on the day it was said: one reader for each kind.

    >>> read_expression("which", "last week", date(2023, 5, 8)).first
    datetime.date(2023, 5, 1)

The kinds are those of ``mgl.text.timewords``; dates are read with python-dateutil.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import cast

from mgl.text.ranges import (
    Days,
    Season,
    Unit,
    month,
    nearest_weekday,
    season,
    shifted,
    stretch,
    weekend,
)
from mgl.text.timewords import HALVES, MONTHS, NUMBERS, PARTS, VAGUE, WEEKDAYS, YEAR

__all__ = ["read_expression"]

_AHEAD = timedelta(days=31)
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_HAS_YEAR = re.compile(YEAR)
_DIGIT = re.compile(r"\d")
_SPLIT_PERIOD = re.compile(r" (?:and|to|until|till|through) ")
_SPLIT_BEFORE = re.compile(r"(?: just| right| shortly)? (before|prior to|after|following) ")
_PART = re.compile(rf"(?:the )?({'|'.join(PARTS)})(?: of| in)?(?: the)? (.*)")


def read_expression(kind: str, phrase: str, said: date) -> Days:
    """The days meant by an expression (lower case, single spaces) of a kind.

    Raises ValueError or OverflowError where no calendar has such a day.
    """
    for half, whole in HALVES.items():
        phrase = phrase.replace(half, whole)
    return _READERS[kind](phrase, said)


def _date(phrase: str, said: date) -> Days:
    """``8 May 2023``, ``the 3rd of July``, ``June 2022``; without a year as the rule has it."""
    if _HAS_YEAR.search(phrase):
        unit: Unit = "day" if _DIGIT.search(_HAS_YEAR.sub("", phrase)) else "month"
        return stretch(_parsed(phrase, said.year), unit)
    return _last_or_near(lambda year: stretch(_parsed(phrase, year), "day"), said)


def _parsed(phrase: str, year: int) -> date:
    from dateutil import parser

    return parser.parse(phrase, default=datetime(year, 1, 1), fuzzy=True).date()


def _last_or_near(in_year: Callable[[int], Days], said: date) -> Days:
    """The latest of its kind that begins at most 31 days after ``said``."""
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


def _between(phrase: str, said: date) -> Days:
    left, right = _SPLIT_PERIOD.split(phrase.partition(" ")[2], maxsplit=1)
    last = _date(right, said)
    if _HAS_YEAR.search(left):
        return Days(_date(left, said).first, last.last)
    for year in (last.last.year, last.last.year - 1):
        first = _date(f"{left} {year}", said).first
        if first <= last.last:
            break
    return Days(first, last.last)


def _before(phrase: str, said: date) -> Days:
    """``the week before 9 June``: the seven days that end on 8 June."""
    what, word, anchor = _SPLIT_BEFORE.split(phrase, maxsplit=1)
    sign = -1 if word in ("before", "prior to") else 1
    anchored = _date(anchor, said)
    edge = anchored.first if sign < 0 else anchored.last
    counted = what.removeprefix("the ").removeprefix("last ")
    unit = counted.split()[-1].removesuffix("s")
    if (weekday := _index(unit, WEEKDAYS)) is not None:
        return stretch(nearest_weekday(edge, weekday, sign), "day")
    if unit == "weekend":
        return weekend(nearest_weekday(edge, 6 if sign < 0 else 5, sign))
    low, high = _count(counted)
    if high == 1:
        return _ordered(edge + sign * _DAY, shifted(edge, sign, unit))
    return _away(edge, sign, low, high, unit)


def _part(phrase: str, said: date) -> Days:
    found = _PART.fullmatch(phrase.replace("-", " "))
    if found is None:
        raise ValueError(f"{phrase!r} is no part of anything")
    name, rest = found[1], found[2]
    if rest in ("week", "month", "year"):
        whole = stretch(said, cast(Unit, rest))
    elif rest.isdigit():
        whole = stretch(date(int(rest), 1, 1), "year")
    elif _index(rest, MONTHS) is not None:
        whole = _month(rest, said)
    elif rest.split()[0] in ("last", "this", "next", "past", "coming"):
        whole = _which(rest, said)
    else:
        whole = _date(rest, said)
    return whole.part(*PARTS[name])


def _season(phrase: str, said: date) -> Days:
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


def _weekend(phrase: str, said: date) -> Days:
    words = phrase.split()
    before = weekend(said - _WEEK)
    if "last" in words or "past" in words:
        return before
    if words[0] in ("over", "on", "during") and said.weekday() < 5:
        return before
    return weekend(said + _WEEK) if "next" in words else weekend(said)


def _rolling(phrase: str, said: date) -> Days:
    """``in the last three months``: from the day three months ago to today."""
    sign = -1 if re.search(r"\b(?:last|past)\b", phrase) else 1
    counted = re.split(r"\b(?:last|past|next|coming) ", phrase, maxsplit=1)[1]
    _, high = _count(counted)
    unit = counted.split()[-1].removesuffix("s")
    return _ordered(said, shifted(said, sign * high, unit))


def _which(phrase: str, said: date) -> Days:
    words = phrase.split()
    what = words[-1]
    sign = _direction(words)
    if what == "night":
        return stretch(said + sign * _DAY, "day")
    if what in ("week", "month", "year", "decade"):
        return stretch(shifted(said, sign, what), cast(Unit, what))
    if (weekday := _index(what, WEEKDAYS)) is not None:
        day = nearest_weekday(said, weekday, sign) if sign else _coming(said, weekday)
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


def _ago(phrase: str, said: date) -> Days:
    sign = 1 if phrase.startswith("in ") or phrase.endswith(" from now") else -1
    counted = re.sub(r"^in | (?:ago|back|from now|more)\b", "", phrase)
    low, high = _count(counted)
    return _away(said, sign, low, high, counted.split()[-1].removesuffix("s"))


def _lasted(phrase: str, said: date) -> Days:
    counted = re.sub(r" (?:now|already)$", "", phrase)
    _, high = _count(counted)
    return _ordered(said, shifted(said, -high, counted.split()[-1].removesuffix("s")))


def _named(phrase: str, said: date) -> Days:
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


def _month(phrase: str, said: date) -> Days:
    number = _month_number(phrase.split()[-1])
    return _last_or_near(lambda year: month(year, number), said)


def _year(phrase: str, _: date) -> Days:
    return stretch(date(int(phrase.split()[-1]), 1, 1), "year")


def _on_weekday(phrase: str, said: date) -> Days:
    word, name = phrase.split()
    weekday = WEEKDAYS.index(next(day for day in WEEKDAYS if day.startswith(name[:3])))
    ahead = word in ("by", "until", "till", "for")
    day = _coming(said, weekday) if ahead else nearest_weekday(said, weekday, -1)
    return stretch(day, "day")


def _on_the(phrase: str, said: date) -> Days:
    """``on the 15th``: the last day of that number up to now."""
    number = int(re.sub(r"\D", "", phrase))
    day = said
    while day.day != number:
        day -= _DAY
    return Days(day, day)


def _away(said: date, sign: int, low: int, high: int, unit: str) -> Days:
    """So many units from a day: the calendar's unit that it falls into."""
    near, far = (shifted(said, sign * number, unit) for number in (low, high))
    if unit == "weekend":
        ends = weekend(near), weekend(far)
    else:
        whole = cast(Unit, "day" if unit == "night" else unit)
        ends = stretch(near, whole), stretch(far, whole)
    return Days(min(days.first for days in ends), max(days.last for days in ends))


def _coming(said: date, weekday: int) -> date:
    """The next day of that name; today, if it is one."""
    return nearest_weekday(said - _DAY, weekday, 1)


def _count(phrase: str) -> tuple[int, int]:
    """How many units are counted, at least and at most: ``a few weeks`` are 2 to 4."""
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
    """The place of a name that a word is, or is short for."""
    return next(
        (place for place, name in enumerate(names) if len(word) > 2 and name.startswith(word)), None
    )


def _ordered(one: date, other: date) -> Days:
    return Days(min(one, other), max(one, other))


def _first(days: Days) -> date:
    return days.first


_READERS: Mapping[str, Callable[[str, date], Days]] = {
    "between": _between,
    "before": _before,
    "part": _part,
    "season": _season,
    "weekend": _weekend,
    "rolling": _rolling,
    "which": _which,
    "ago": _ago,
    "lasted": _lasted,
    "date": _date,
    "named": _named,
    "month": _month,
    "year": _year,
    "weekday": _on_weekday,
    "monthday": _on_the,
}
