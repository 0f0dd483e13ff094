"""Times in text. Monday 8 May 2023 is the day on which things are said, unless told otherwise."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.text import time_mentions
from mgl.text.times import shift
from mgl.text.timewords import find_expressions

SAID = datetime(2023, 5, 8, 13, 56)


def read(text: str, at: datetime | date | None = SAID) -> list[tuple[str, str]]:
    """What was found, as (expression, FIRST or FIRST/LAST)."""
    return [
        (m.expression, str(m.begin) + (f"/{m.until}" if m.until > m.begin else ""))
        for m in time_mentions(text, at)
    ]


words = st.sampled_from(
    "in on the last next since two a 5 may May 2023 days ago week the summer of Friday weekend "
    "ſunday between and tomorrow morning this past other day early mid 15th for been now ring "
    "Bo met fall -".split()
)


@given(st.lists(words, max_size=9).map(" ".join))
def test_what_lets_a_text_be_searched_hides_no_expression(text: str) -> None:
    searched = [found.span() for found in find_expressions(f"{text} #0")]  # a digit is a reason
    assert [found.span() for found in find_expressions(text)] == searched


MEANT = """
yesterday = 2023-05-07
the day before yesterday = 2023-05-06
tonight = 2023-05-08
last night = 2023-05-07
the other day = 2023-05-01/2023-05-06
last week = 2023-05-01/2023-05-07
this week = 2023-05-08/2023-05-14
Next  month = 2023-06-01/2023-06-30
last year = 2022-01-01/2022-12-31
last monday = 2023-05-01
this Monday = 2023-05-08
on Friday = 2023-05-05
by Friday = 2023-05-12
last June = 2022-06-01/2022-06-30
last weekend = 2023-05-06/2023-05-07
over the weekend = 2023-05-06/2023-05-07
for the weekend = 2023-05-13/2023-05-14
next weekend = 2023-05-20/2023-05-21
last summer = 2022-06-01/2022-08-31
next winter = 2023-12-01/2024-02-29
summer of 2021 = 2021-06-01/2021-08-31
two weeks ago = 2023-04-24/2023-04-30
12 days ago = 2023-04-26
a few weeks ago = 2023-04-10/2023-04-30
two decades ago = 2000-01-01/2009-12-31
twenty-two years ago = 2001-01-01/2001-12-31
in 3 months = 2023-08-01/2023-08-31
two days from now = 2023-05-10
in the last month = 2023-04-08/2023-05-08
the next two weeks = 2023-05-08/2023-05-22
Sept. 5 = 2022-09-05
the 3rd of July = 2022-07-03
June the 7th = 2023-06-07
5/9/2022 = 2022-05-09
3June, 2022 = 2022-06-03
on the 15th = 2023-04-15
Dec 2022 = 2022-12-01/2022-12-31
in March = 2023-03-01/2023-03-31
since 2016 = 2016-01-01/2016-12-31
Feb 29 = 2020-02-29
early June = 2023-06-01/2023-06-10
mid-June = 2023-06-11/2023-06-20
the end of May = 2023-05-21/2023-05-31
first half of September 2022 = 2022-09-01/2022-09-15
the second week of November = 2022-11-08/2022-11-15
late last month = 2023-04-21/2023-04-30
the beginning of 2020 = 2020-01-01/2020-05-01
the week before 9 June 2023 = 2023-06-02/2023-06-08
a month before 9 June 2023 = 2023-05-09/2023-06-08
the Sunday before 25 October, 2022 = 2022-10-23
the weekend after 3 June, 2022 = 2022-06-04/2022-06-05
between August 11 and August 15 2023 = 2023-08-11/2023-08-15
between 20 December and 3 January 2023 = 2022-12-20/2023-01-03
from June to August 2022 = 2022-06-01/2022-08-31
"""


@pytest.mark.parametrize("case", MEANT.strip().split("\n"))
def test_what_is_meant(case: str) -> None:
    expression, days = case.split(" = ")
    assert read(f"So, {expression}!") == [(expression, days)]


@pytest.mark.parametrize(
    ("expression", "begin"),
    [
        ("for over ten years", date(2013, 5, 8)),
        ("been a few days", date(2023, 5, 4)),
        ("5 years already", date(2018, 5, 8)),
        ("for twenty-five years", date(1998, 5, 8)),
    ],
)
def test_how_long_something_took_is_the_time_up_to_now(expression: str, begin: date) -> None:
    [found] = time_mentions(f"We have {expression}.", SAID)
    assert (found.expression, found.kind) == (expression, "duration")
    assert (found.begin, found.until) == (begin, SAID.date())


@pytest.mark.parametrize(
    "text",
    [
        "We may go on a march in the sun, and we sat.",
        "May I? March on! Sat down. Mon ami.",
        "She is 3 years old, and was 12 for 3 years old.",
        "on the 15th floor",
        "31 June, February 29 2023, 45/45/2023",
        "1,000 days ago; 12.5 days ago",
        "Sundays, on Sundays, every day, one day",
        "in 90 minutes, at 3:15 pm, 24/7",
        "the next day",
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "a year and two months ago",
        "1 year 2 months ago",
        "a year, two months\nand three days ago",
        "in a month and a half",
        "2 1/2 years ago, 2½ years ago",
        "half a month ago, three quarters of a year ago",
        "two or three years ago, two to three weeks ago",
        "2-3 weeks ago, 10–12 June 2023, pre-last week",
        "a hundred and twenty-five days ago, two hundred five years ago",
        "the week before last week, the weekend before last, the weekend after next",
        "the Friday before last Friday, two days before yesterday",
        "two years before 2020, the morning after 8 May 2023",
        "a week from tomorrow, two weeks from 8 May",
    ],
)
def test_of_what_cannot_be_read_as_a_whole_no_part_is_read(text: str) -> None:
    assert read(f"It was {text}.") == []


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("I turned 30 five years ago", ["five years ago"]),
        ("last year and two months ago", ["last year", "two months ago"]),
        ("last Friday after work, this morning before work", ["last Friday", "this morning"]),
        ("a week ago last Friday in May 2021", ["a week ago", "May 2021"]),
        ("two weeks from June to August 2022", ["from June to August 2022"]),
        ("I met her last week. We marry on 3 June 2024.", ["last week", "3 June 2024"]),
    ],
)
def test_what_stands_beside_other_words_of_time_is_whole(text: str, expressions: list[str]) -> None:
    assert [expression for expression, _ in read(text)] == expressions


def test_where_nothing_tells_when_it_was_said_only_years_do() -> None:
    text = "Last week, in May 2023, on 3 June, in 2019, two days ago, the week before 3 June 2020."
    assert read(text, None) == [
        ("May 2023", "2023-05-01/2023-05-31"),
        ("in 2019", "2019-01-01/2019-12-31"),
        ("the week before 3 June 2020", "2020-05-27/2020-06-02"),
    ]


def test_the_day_is_the_speakers_own() -> None:
    late = datetime(2023, 5, 8, 23, 30, tzinfo=timezone(timedelta(hours=-9)))
    assert late.astimezone(UTC).day == 9
    assert read("today", late) == read("today", late.date()) == [("today", "2023-05-08")]


@pytest.mark.parametrize("said", [date(1, 1, 1), date(9999, 12, 31)])
def test_at_the_ends_of_the_calendar(said: date) -> None:
    text = "yesterday tomorrow last year, next year. In 999 years, last winter, in May, 3 June."
    assert all(mention.begin <= mention.until for mention in time_mentions(text, said))


days = st.dates(date(1900, 1, 1), date(2099, 12, 31))
NAMES = "January February March April May June July August September October November December"


@given(said=days, meant=days, form=st.integers(0, 5))
def test_a_full_date_is_that_day_whenever_it_is_said(said: date, meant: date, form: int) -> None:
    name = NAMES.split()[meant.month - 1]
    written = [
        f"{meant.day} {name} {meant.year}",
        f"{name} {meant.day}, {meant.year}",
        f"{meant.day} {name[:3]}, {meant.year}",
        meant.isoformat(),
        f"{meant.month}/{meant.day}/{meant.year}",
        f"the {meant.day}th of {name} {meant.year}",
    ][form]
    assert read(f"It was {written}.", said) == [(written, str(meant))]


words = st.sampled_from(
    "last this next the of in for on before after between from to and ago week weekend month May "
    "june 8 8th 2023 31 Friday few a three years summer end early second half 5/8/2023 , -".split()
)


@given(st.lists(words, max_size=25), days | st.none())
def test_any_words_give_mentions_that_are_in_the_text(parts: list[str], said: date | None) -> None:
    text, end = " ".join(parts), 0
    for mention in time_mentions(text, said):
        assert end <= mention.start < mention.end
        assert text[mention.start : mention.end] == mention.expression
        assert mention.begin <= mention.until
        end = mention.end


def test_a_month_away_is_in_the_month() -> None:
    assert shift(date(2024, 2, 29), -1, "year") == date(2023, 2, 28)
    assert shift(date(2023, 3, 31), -1, "month") == date(2023, 2, 28)
