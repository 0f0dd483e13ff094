"""Facts: their times, and what becomes of those that are known or contradicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.memories.mnemis import facts
from mgl.memories.mnemis.edits import VOCABULARY
from mgl.memories.mnemis.facts import parse_moment
from mgl.memories.mnemis.state import Fact
from mgl.store import EditRecord
from mgl.types import Turn
from tests.memories.mnemis.engine import Model, find_stage, reader, taken_in, talk

MAY = datetime(2023, 5, 8, 13, 56)
NEXT = MAY + timedelta(days=30)


def turn(text: str, at: datetime | None, place: int = 0) -> Turn:
    return Turn(str(place), "Ann", text, at)


def fact(text: str, **times: str | None) -> dict[str, Any]:
    return {"src": 1, "source": "Ann", "target": "Rome", "fact": text, **times}


@dataclass
class Told:
    """What a memory made of some facts."""

    model: Model
    rows: list[EditRecord]
    facts: list[Fact]


async def tell(
    *facts: dict[str, Any],
    verdicts: Sequence[dict[str, Any]] = (),
    at: Sequence[datetime | None] = tuple(MAY + timedelta(30 * month) for month in range(3)),
) -> Told:
    """One fact a turn, a month apart, and what the model decides of each after the first."""
    model = reader(
        edges=[{"facts": [each]} for each in facts],
        **({"edge_deduplication": [{"n1": each} for each in verdicts]} if verdicts else {}),
    )
    turns = [
        turn(f"Rome, Paris. {each['fact']}", at[place], place) for place, each in enumerate(facts)
    ]
    rows, state = await taken_in(model, talk(*turns))
    assert VOCABULARY.replay(rows) == state
    return Told(model, rows, list(state.facts.values()))


@pytest.mark.parametrize(
    ("at", "times", "read"),
    [
        (MAY, {"valid_at": "last week"}, (datetime(2023, 5, 1), None)),
        (
            MAY,
            {"valid_at": "2016", "invalid_at": "in 2019"},
            (datetime(2016, 1, 1), datetime(2019, 12, 31)),
        ),
        (MAY, {}, (None, None)),
        (None, {"valid_at": "last week"}, (None, None)),
        (None, {"valid_at": "May 2021"}, (datetime(2021, 5, 1), None)),
    ],
)
async def test_times_are_read_against_the_episode_and_without_its_time_only_with_a_year(
    at: datetime | None, times: dict[str, str], read: tuple[datetime | None, datetime | None]
) -> None:
    (found,) = (await tell(fact("Ann lived in Rome.", **times), at=[at])).facts
    assert (found.valid_at, found.invalid_at) == read


@pytest.mark.parametrize(
    "times",
    [
        {"valid_at": "31 February 2023"},
        {"valid_at": "when pigs fly"},
        {"valid_at": "2021", "invalid_at": "in 2019"},
        {"invalid_at": "99999-01-01"},
    ],
)
async def test_a_time_that_cannot_be_is_dropped_and_said_so(times: dict[str, str]) -> None:
    told = await tell(fact("Ann lives in Rome.", **times))
    assert told.facts[0].invalid_at is None
    (row,) = [row for row in told.rows if row.op == "add_fact"]
    assert (row.outcome, row.reason) == ("repaired", "time_dropped")


ENDED = {"same": "none", "contradicts": ["f1"]}


@pytest.mark.parametrize(
    ("first", "second", "verdict", "ends"),
    [
        (None, None, {"same": "f1", "contradicts": []}, [None]),
        ("2021", "last week", ENDED, [datetime(2023, 5, 29), None]),
        (None, None, ENDED, [NEXT, None]),
        ("2021", "2016", ENDED, [None, datetime(2021, 1, 1)]),
    ],
    ids=["said again", "closed", "closed when it is said", "ended by the later one"],
)
async def test_a_fact_is_repeated_or_ended_as_the_model_decides(
    first: str | None, second: str | None, verdict: dict[str, Any], ends: list[datetime | None]
) -> None:
    one, other = fact("Ann lives in Rome.", valid_at=first), fact("Ann left Rome.", valid_at=second)
    facts = (await tell(one, other, verdicts=[verdict])).facts
    assert [each.invalid_at for each in facts] == ends
    assert facts[0].text == "Ann lives in Rome."
    assert facts[0].episodes == ((0, 1) if len(facts) == 1 else (0,))


PARIS = {"src": 1, "source": "Ann", "target": "Paris"}


async def test_a_fact_is_contradicted_by_one_of_other_entities_that_is_like_it() -> None:
    away = {**PARIS, "fact": "Ann lives in Paris now."}
    told = await tell(fact("Ann lives in Rome."), away, verdicts=[ENDED])
    (asked,) = told.model.prompts("edge_deduplication")
    read, _ = told.model.prompts("edges")
    assert "(Monday, 08 May 2023, 13:56) Ann: [1] Rome, Paris. [2] Ann lives in Rome." in read
    assert "n1 Ann lives in Paris now. (2023-06-07 - now)\n" in asked
    assert "  f1 Ann lives in Rome. (2023-05-08 - now)\n" in asked
    assert [each.invalid_at for each in told.facts] == [NEXT, None]


async def test_what_held_before_a_fact_was_stated_does_not_end_it() -> None:
    before = {**PARIS, "fact": "Ann lived in Paris.", "valid_at": "in 2016"}
    rome, paris = (await tell(fact("Ann lives in Rome."), before, verdicts=[ENDED])).facts
    assert (rome.valid_at, rome.invalid_at) == (None, None)
    assert (paris.valid_at, paris.invalid_at) == (datetime(2016, 1, 1), MAY)


async def test_a_month_that_was_not_over_when_a_fact_was_stated_ends_it() -> None:
    moved = {**PARIS, "fact": "Ann lives in Paris.", "valid_at": "last month"}
    rome, paris = (await tell(fact("Ann lives in Rome."), moved, verdicts=[ENDED])).facts
    assert (rome.invalid_at, paris.invalid_at) == (MAY, None)


@pytest.mark.parametrize("same", ["Ann lives in Rome.", "Rome was home to Ann."])
async def test_a_repetition_brings_the_times_that_it_states(same: str) -> None:
    again = fact(same, valid_at="2016", invalid_at="until last week")
    verdict = {"same": "f1", "contradicts": []}
    (found,) = (await tell(fact("Ann lives in Rome."), again, verdicts=[verdict])).facts
    assert (found.valid_at, found.invalid_at) == (datetime(2016, 1, 1), datetime(2023, 6, 4))
    assert found.episodes == (0, 1)


async def test_the_fact_of_one_who_moved_back_holds_and_the_first_is_not_offered() -> None:
    away, back = {**PARIS, "fact": "Ann lives in Paris."}, fact("Ann lives in Rome again.")
    undone = {"same": "none", "contradicts": ["f2"]}
    told = await tell(fact("Ann lives in Rome."), away, back, verdicts=[ENDED, undone])
    rome, paris, again = told.facts
    *_, asked = [r for r in told.model.requests if find_stage(r)[0] == "edge_deduplication"]
    offered: Any = asked.json_schema
    assert offered["properties"]["n1"]["properties"]["same"] == {"const": "none", "type": "string"}
    assert "  f1 Ann lives in Rome. (2023-05-08 - 2023-06-07)" in asked.messages[0].content
    assert (rome.invalid_at, paris.invalid_at) == (NEXT, MAY + timedelta(60))
    assert (again.text, again.invalid_at) == ("Ann lives in Rome again.", None)


async def test_an_ended_fact_that_is_told_again_with_its_times_is_the_same() -> None:
    ended = fact("Ann lived in Rome.", valid_at="2016", invalid_at="2019")
    told = await tell(ended, ended)
    assert [each.episodes for each in told.facts] == [(0, 1)]
    assert "edge_deduplication" not in told.model.stages()


async def test_what_holds_again_is_no_repetition_of_what_ended() -> None:
    lives, left = fact("Ann lives in Rome."), fact("Ann left Rome.")
    neither = {"same": "none", "contradicts": []}
    facts = (await tell(lives, left, lives, verdicts=[ENDED, neither])).facts
    assert [each.invalid_at for each in facts][::2] == [NEXT, None]


WORDS = st.sampled_from(
    [None, "2021", "in 2016", "last week", "8 May 2023", "next month", "30 February 2022", "soon"]
)
TIMES = st.sampled_from([None, MAY, NEXT, MAY.replace(tzinfo=UTC), datetime(2015, 1, 1)])


@pytest.mark.heavy
@settings(max_examples=60, deadline=None)
@given(
    st.tuples(WORDS, WORDS),
    st.tuples(WORDS, WORDS),
    st.tuples(TIMES, TIMES),
    st.sampled_from(["none", "f1"]),
)
async def test_no_fact_ends_before_it_begins(
    first: tuple[str | None, str | None],
    second: tuple[str | None, str | None],
    times: tuple[datetime | None, datetime | None],
    same: str,
) -> None:
    given_times = [
        dict(zip(("valid_at", "invalid_at"), each, strict=True)) for each in (first, second)
    ]
    lives, left = (
        fact("Ann lives in Rome.", **given_times[0]),
        fact("Ann left Rome.", **given_times[1]),
    )
    verdict = {"same": same, "contradicts": ["f1"]}
    facts = (await tell(lives, left, verdicts=[verdict], at=times)).facts
    assert len(facts) in ({2} if same == "none" else {1, 2})
    for each in facts:
        if each.valid_at is not None and each.invalid_at is not None:
            assert each.valid_at.replace(tzinfo=None) <= each.invalid_at.replace(tzinfo=None)


async def test_a_fact_is_held_against_the_likest_known_ones_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = [f"Ann saw the {place} of Rome." for place in ("tombs", "walls", "parks", "roads")]
    other = "Nobody else came here."
    ingestor = reader(
        edges=[
            {"facts": [fact(text) for text in (other, *known)]},
            {"facts": [fact("Ann saw the walls of Rome again.")]},
            {"facts": [fact("They left by ferry later on.")]},
        ]
    )
    turns = [turn("I am in Rome.", MAY, place) for place in range(3)]
    monkeypatch.setattr(facts, "CANDIDATES", 2)
    await taken_in(ingestor, talk(*turns))
    (asked,) = ingestor.prompts("edge_deduplication")
    shown = [line.split(" ", 3)[3] for line in asked.splitlines() if line.startswith("  f")]
    assert len(shown) == 2
    assert shown[0].startswith("Ann saw the walls of Rome.")
    assert other not in asked


@pytest.mark.parametrize(
    ("words", "begin", "end"),
    [
        ("2021", datetime(2021, 1, 1), datetime(2021, 12, 31)),
        ("2023-05-07", datetime(2023, 5, 7), datetime(2023, 5, 7)),
        ("2023-05-07T10:30:00", datetime(2023, 5, 7, 10, 30), datetime(2023, 5, 7, 10, 30)),
        ("last week", datetime(2023, 5, 1), datetime(2023, 5, 7)),
        ("for three years", datetime(2020, 5, 8), datetime(2023, 5, 8)),
        ("31 February 2023", None, None),
        ("soon " * 1000, None, None),
    ],
)
def test_a_moment_is_the_first_day_or_the_last(
    words: str, begin: datetime | None, end: datetime | None
) -> None:
    assert parse_moment(words, MAY) == begin
    assert parse_moment(words, MAY, end=True) == end
