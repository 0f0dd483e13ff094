"""Stretches of whole days: the week, weekend, month, season or year that a day lies in.

    >>> week(date(2023, 5, 8))
    Days(first=datetime.date(2023, 5, 8), last=datetime.date(2023, 5, 14))

Weeks begin on Monday (ISO 8601). Seasons are those of the northern hemisphere in whole months; a
winter is called by the year in which it begins.
"""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

__all__ = [
    "Days",
    "Season",
    "Unit",
    "month",
    "nearest_weekday",
    "season",
    "shift",
    "stretch",
    "week",
    "weekend",
]

Unit = Literal["day", "week", "month", "year", "decade"]
Season = Literal["spring", "summer", "autumn", "winter"]
_FIRST_MONTH: dict[Season, int] = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}


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


def stretch(day: date, unit: Unit) -> Days:
    """Give the calendar's day, week (from Monday), month, year or decade that holds a day."""
    match unit:
        case "day":
            return Days(day, day)
        case "week":
            return week(day)
        case "month":
            return month(day.year, day.month)
        case "year":
            return Days(date(day.year, 1, 1), date(day.year, 12, 31))
        case "decade":
            begin = max(day.year // 10 * 10, date.min.year)
            return Days(date(begin, 1, 1), date(day.year // 10 * 10 + 9, 12, 31))


def week(day: date) -> Days:
    """Monday to Sunday."""
    monday = day - timedelta(day.weekday())
    return Days(monday, monday + timedelta(6))


def weekend(day: date) -> Days:
    """Saturday and Sunday of the day's week."""
    sunday = week(day).last
    return Days(sunday - timedelta(1), sunday)


def month(year: int, number: int) -> Days:
    """All days of a month."""
    return Days(date(year, number, 1), date(year, number, monthrange(year, number)[1]))


def season(year: int, name: Season) -> Days:
    """Three whole months; the winter of 2022 ends in February 2023."""
    begin = _FIRST_MONTH[name]
    end = (year + 1, 2) if name == "winter" else (year, begin + 2)
    return Days(date(year, begin, 1), month(*end).last)


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
        case "year":
            return day + relativedelta(years=number)
        case "decade":
            return day + relativedelta(years=10 * number)
    raise ValueError(f"{unit!r} is no unit of time")


def nearest_weekday(day: date, weekday: int, sign: int) -> date:
    """Find the next day of that name (sign 1), or the one before (-1); Monday is 0."""
    distance = (sign * (weekday - day.weekday()) - 1) % 7 + 1
    return day + timedelta(sign * distance)
