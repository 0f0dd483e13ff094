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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice
from typing import Final, Literal

from mgl.errors import InputError
from mgl.text.timewords import (
    DAYS_AWAY,
    MONTHS,
    PARTS,
    WEEKDAYS,
    YEAR,
    count_units,
    find_expressions,
    find_name,
    is_part,
)

_YEARS: Final = range(1000, 9000)
MOST_EXPRESSIONS: Final = 10_000
_DAY: Final = timedelta(days=1)
_AHEAD: Final = timedelta(days=31)
_ANY_DAY: Final = date(2000, 1, 1)
_HAS_YEAR = re.compile(YEAR)
_SPLIT_PERIOD = re.compile(r" (?:and|to|until|till|through) ")
_SPLIT_BEFORE = re.compile(r"(?: just| right| shortly)? (before|prior to|after|following) ")
_PART = re.compile(rf"(?:the )?({'|'.join(PARTS)})(?: of| in)?(?: the)? (.*)")
_FIRST_MONTH: Final = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}


def check_time(time: datetime | None) -> None:
    """InputError for a time that calendars cannot reckon with, such as the zero of a programming
    language: the year has to be 1000 to 8999."""
    if time is not None and time.year not in _YEARS:
        raise InputError(
            f"{time.isoformat()} is not in the years {_YEARS[0]} to {_YEARS[-1]}",
            hint="leave the time out where it is not known",
        )


def as_aware(time: datetime) -> datetime:
    """A time with its offset from UTC; one without is local time."""
    return time if time.tzinfo is not None else time.astimezone()


def find_gap(before: datetime, after: datetime) -> timedelta:
    """The time between two times; as clocks show them where one of them has no offset."""
    if before.tzinfo is None or after.tzinfo is None:
        return after.replace(tzinfo=None) - before.replace(tzinfo=None)
    return after - before


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
    """Find the times that a text mentions, in order and without overlap: of its first
    ``MOST_EXPRESSIONS`` expressions.

    ``at`` is when it was said, in the speaker's own time; without it (None), only expressions with
    a year are read.
    """
    said = at.date() if isinstance(at, datetime) else at
    matches = islice(find_expressions(text), MOST_EXPRESSIONS)
    found = (_mention(match, said) for match in matches if not is_part(match))
    return [mention for mention in found if mention is not None]


def _mention(found: re.Match[str], said: date | None) -> TimeMention | None:
    kind, phrase = found.lastgroup or "", " ".join(found[0].lower().split())
    if said is None and not _HAS_YEAR.search(phrase):
        return None
    try:
        days = _READERS[kind](phrase, said or _ANY_DAY)
    except (OverflowError, ValueError):  # a day that no calendar has
        return None
    is_duration = kind == "lasted"
    return TimeMention(
        found[0], *found.span(), days.first, days.last, "duration" if is_duration else "time"
    )


# Days of the calendar


@dataclass(frozen=True, slots=True)
class Days:
    """From one day to another, both included; ValueError where they are the wrong way round."""

    first: date
    last: date

    def __post_init__(self) -> None:
        if self.last < self.first:
            raise ValueError(f"{self.last} is before {self.first}")

    def part(self, number: int, parts: int) -> Days:
        """Cut into ``parts`` of about the same length; return one, counted from 0."""
        length = (self.last - self.first).days + 1
        low, high = length * number // parts, length * (number + 1) // parts
        return Days(self.first + timedelta(low), self.first + timedelta(max(low, high - 1)))


def stretch(day: date, unit: str) -> Days:
    """Give the day, night, week, weekend, month, season, year or decade that holds a day; of a week
    its weekend."""
    monday = day.weekday()
    match unit:
        case "day" | "night":
            return Days(day, day)
        case "week":
            return Days(day - timedelta(monday), day + timedelta(6 - monday))
        case "weekend":
            sunday = day + timedelta(6 - monday)
            return Days(sunday - _DAY, sunday)
        case "month":
            return Days(day.replace(day=1), _last_of_month(day))
        case "year":
            return Days(date(day.year, 1, 1), date(day.year, 12, 31))
        case "decade":
            begin = day.year // 10 * 10
            return Days(date(max(begin, date.min.year), 1, 1), date(begin + 9, 12, 31))
    raise ValueError(f"{unit!r} is no unit of time")


def shift(day: date, number: int, unit: str) -> date:
    """Shift a day by so many units; a month after 31 January is the last day of February.

    A night counts as a day, a weekend as a week.
    """
    from dateutil.relativedelta import relativedelta

    match unit:
        case "day" | "night":
            return day + timedelta(number)
        case "week" | "weekend":
            return day + timedelta(7 * number)
        case "month":
            return day + relativedelta(months=number)
        case "year" | "decade":
            return day + relativedelta(years=number if unit == "year" else 10 * number)
    raise ValueError(f"{unit!r} is no unit of time")


def _last_of_month(day: date) -> date:
    from dateutil.relativedelta import relativedelta

    return day + relativedelta(day=31)


def _month(year: int, number: int) -> Days:
    return stretch(date(year, number, 1), "month")


def _season(year: int, name: str) -> Days:
    """Three whole months; the winter of 2022 ends in February 2023."""
    begin = date(year, _FIRST_MONTH[name], 1)
    return Days(begin, _last_of_month(shift(begin, 2, "month")))


def _nearest_weekday(day: date, weekday: int, sign: int) -> date:
    """Find the next day of that name (sign 1), or the one before (-1); Monday is 0."""
    distance = (sign * (weekday - day.weekday()) - 1) % 7 + 1
    return day + timedelta(sign * distance)


def _coming_weekday(day: date, weekday: int) -> date:
    """The next day of that name; the day itself, if it is one."""
    return _nearest_weekday(day - _DAY, weekday, 1)


def _order(one: date, other: date) -> Days:
    return Days(min(one, other), max(one, other))


def _choose(known: Sequence[Days], said: date, sign: int) -> Days:
    """The last of several that ended before a day (sign -1), or the first that begins after it."""
    if sign < 0:
        return max((days for days in known if days.last < said), key=lambda days: days.first)
    return min((days for days in known if days.first > said), key=lambda days: days.first)


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


# Words


def _month_number(name: str) -> int:
    found = find_name(name, MONTHS)
    if found is None:
        raise ValueError(f"{name!r} is no month")
    return found + 1


def _direction(words: Sequence[str]) -> int:
    if "last" in words or "past" in words:
        return -1
    return 1 if "next" in words or "coming" in words else 0


def _go(said: date, sign: int, counted: str) -> Days:
    """Go a number of units from a day, and give the whole unit that is reached."""
    low, high, unit = count_units(counted)
    ends = [stretch(shift(said, sign * number, unit), unit) for number in (low, high)]
    return Days(min(days.first for days in ends), max(days.last for days in ends))


def _span(said: date, sign: int, counted: str) -> Days:
    """All days from a day to another that is a number of units away."""
    _, high, unit = count_units(counted)
    return _order(said, shift(said, sign * high, unit))


# Readers, one for each kind of expression


def _read_date(phrase: str, said: date) -> Days:
    """``8 May 2023``, ``the 3rd of July``, ``June 2022``."""
    if _HAS_YEAR.search(phrase):
        has_day = re.search(r"\d", _HAS_YEAR.sub("", phrase))
        return stretch(_parse(phrase, said.year), "day" if has_day else "month")
    return _last_or_near(lambda year: stretch(_parse(phrase, year), "day"), said)


def _parse(phrase: str, year: int) -> date:
    from dateutil import parser

    return parser.parse(phrase, default=datetime(year, 1, 1), fuzzy=True).date()


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
    _, high, unit = count_units(counted)
    if (weekday := find_name(unit, WEEKDAYS)) is not None:
        return stretch(_nearest_weekday(edge, weekday, sign), "day")
    if unit == "weekend":
        return stretch(_nearest_weekday(edge, 6 if sign < 0 else 5, sign), unit)
    if high == 1:
        return _order(edge + sign * _DAY, shift(edge, sign, unit))
    return _go(edge, sign, counted)


def _read_part(phrase: str, said: date) -> Days:
    found = _PART.fullmatch(phrase.replace("-", " "))
    if found is None:
        raise ValueError(f"{phrase!r} does not name a part of a time, such as 'early'")
    name, rest = found[1], found[2]
    if rest in ("week", "month", "year"):
        whole = stretch(said, rest)
    elif rest.isdigit():
        whole = _read_year(rest, said)
    elif find_name(rest, MONTHS) is not None:
        whole = _read_month(rest, said)
    elif rest.split()[0] in ("last", "this", "next", "past", "coming"):
        whole = _read_which(rest, said)
    else:
        whole = _read_date(rest, said)
    return whole.part(*PARTS[name])


def _read_season(phrase: str, said: date) -> Days:
    words = phrase.replace(",", " ").split()
    if words[-1].isdigit():
        return _season(int(words[-1]), words[0])
    known = [_season(year, words[-1]) for year in range(said.year - 2, said.year + 2)]
    if sign := _direction(words):
        return _choose(known, said, sign)
    now = [days for days in known if days.first <= said <= days.last]
    return now[0] if now else _season(said.year, words[-1])


def _read_weekend(phrase: str, said: date) -> Days:
    words = phrase.split()
    weeks = {"last": -1, "past": -1, "next": 1}.get(words[-2], 0)
    if words[0] in ("over", "on", "during") and said.weekday() < 5:
        weeks = -1
    return stretch(shift(said, weeks, "week"), "weekend")


def _read_rolling(phrase: str, said: date) -> Days:
    """``in the last three months``: from the day three months ago to today."""
    sign = -1 if re.search(r"\b(?:last|past)\b", phrase) else 1
    return _span(said, sign, re.split(r"\b(?:last|past|next|coming) ", phrase, maxsplit=1)[1])


def _read_which(phrase: str, said: date) -> Days:
    words = phrase.split()
    what, sign = words[-1], _direction(words)
    if what == "night":
        return stretch(said + sign * _DAY, "day")
    if what in ("week", "month", "year", "decade"):
        return stretch(shift(said, sign, what), what)
    if (weekday := find_name(what, WEEKDAYS)) is not None:
        near = _nearest_weekday(said, weekday, sign) if sign else _coming_weekday(said, weekday)
        return stretch(near, "day")
    number = _month_number(what)
    if sign == 0:
        return _month(said.year, number)
    return _choose([_month(said.year + year, number) for year in (-1, 0, 1)], said, sign)


def _read_ago(phrase: str, said: date) -> Days:
    sign = 1 if phrase.startswith("in ") or phrase.endswith(" from now") else -1
    return _go(said, sign, re.sub(r"^in | (?:ago|back|from now|more)\b", "", phrase))


def _read_lasted(phrase: str, said: date) -> Days:
    return _span(said, -1, re.sub(r" (?:now|already)$", "", phrase))


def _read_named(phrase: str, said: date) -> Days:
    first, last = DAYS_AWAY.get(phrase.removeprefix("the "), (0, 0))
    return Days(said + first * _DAY, said + last * _DAY)


def _read_month(phrase: str, said: date) -> Days:
    number = _month_number(phrase.split()[-1])
    return _last_or_near(lambda year: _month(year, number), said)


def _read_year(phrase: str, _: date) -> Days:
    return stretch(date(int(phrase.split()[-1]), 1, 1), "year")


def _read_weekday(phrase: str, said: date) -> Days:
    word, name = phrase.split()
    weekday = WEEKDAYS.index(next(day for day in WEEKDAYS if day.startswith(name[:3])))
    if word in ("by", "until", "till", "for"):
        return stretch(_coming_weekday(said, weekday), "day")
    return stretch(_nearest_weekday(said, weekday, -1), "day")


def _read_monthday(phrase: str, said: date) -> Days:
    """``on the 15th``: the last day of that number up to now."""
    number, day = int(re.sub(r"\D", "", phrase)), said
    while day.day != number:
        day -= _DAY
    return Days(day, day)


_READERS: Final[Mapping[str, Callable[[str, date], Days]]] = {
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
    "weekday": _read_weekday,
    "monthday": _read_monthday,
}
"""By the kind of expression."""
