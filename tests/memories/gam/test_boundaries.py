"""When the buffer is looked at, where it is cut, and what noise does to boundaries."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import Scripted, ScriptedEngine
from mgl.memories.gam import SmallGamConfig
from mgl.memories.gam.boundaries import SHIFT, Cut, Trigger, find_cut, next_trigger, perturb
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.state import Append, BoundaryCheck, GamState
from mgl.memories.options import choose_kind
from mgl.types import Turn
from tests.memories.gam.conftest import replay

START = datetime(2023, 5, 8, 9, 0)
NINE = tuple(range(9))
EAST = timezone(timedelta(hours=2))


def turn(number: int, *, session: str | None = "1", minutes: int | None = None) -> Turn:
    time = None if minutes is None else START + timedelta(minutes=minutes)
    return Turn(f"{number}", "Ann", f"word{number} two three", time, session)


def appended(count: int, *more: BoundaryCheck) -> GamState:
    return replay([*map(Append, range(count)), *more])


async def words(numbers: Sequence[int]) -> int:
    """Every turn has four tokens."""
    return 4 * len(numbers)


def llm(*replies: Scripted) -> tuple[Client, ScriptedEngine]:
    engine = ScriptedEngine(replies)
    return Client(engine, MemoryCallLog()), engine


def found(*indices: int) -> str:
    return json.dumps({"boundaries": indices})


# When


@pytest.mark.parametrize(
    "sessions", [("1", "1", "2"), ("1", "1", None), (None, None, "1"), ("1", "1", "2", "2")]
)
async def test_a_session_ends_with_the_first_turn_of_another(
    sessions: tuple[str | None, ...],
) -> None:
    """Seen late, too: a reply comes before what the turn that it answers makes due."""
    turns = [turn(number, session=session) for number, session in enumerate(sessions)]
    found = await next_trigger(appended(len(turns)), turns, GamConfig(), words)
    assert found == Trigger("session_end", (0, 1))


@pytest.mark.parametrize(
    ("before", "after", "pauses"),
    [
        (datetime(2023, 5, 8, 8, 0, tzinfo=UTC), datetime(2023, 5, 8, 10, 1, tzinfo=EAST), False),
        (datetime(2023, 5, 8, 10, 0, tzinfo=EAST), datetime(2023, 5, 8, 11, 0, tzinfo=UTC), True),
        (datetime(2023, 5, 8, 10, 0, tzinfo=EAST), datetime(2023, 5, 8, 11, 0), False),
        (datetime(2023, 5, 8, 10, 0), datetime(2023, 5, 8, 11, 1, tzinfo=UTC), True),
    ],
)
async def test_a_gap_between_zones_is_what_passed_and_else_what_clocks_show(
    before: datetime, after: datetime, pauses: bool
) -> None:
    turns = [Turn("1", "Ann", "one", before, "1"), Turn("2", "Bo", "two", after, "1")]
    expected = Trigger("pause", (0,)) if pauses else None
    assert await next_trigger(appended(2), turns, GamConfig(), words) == expected


async def test_what_was_looked_at_is_not_looked_at_again() -> None:
    turns = [turn(0), turn(1), turn(2, session="2")]
    state = appended(3, BoundaryCheck("session_end", 1, ()))
    assert await next_trigger(state, turns, GamConfig(), words) is None
    full, config = [turn(n) for n in range(9)], GamConfig(buffer_tokens=32)
    assert await next_trigger(appended(9), full, config, words) is not None
    assert (
        await next_trigger(appended(9, BoundaryCheck("overflow", 8, ())), full, config, words)
        is None
    )


Said = st.tuples(st.sampled_from("12"), st.sampled_from([0, 40, 61]))


@given(
    st.lists(Said, max_size=8),
    st.sampled_from(["semantic", "session", "window"]),
    st.integers(0, 8),
    st.sets(st.integers(0, 7), max_size=2),
)
def test_after_a_quiet_buffer_the_same_trigger_is_found(
    said: list[tuple[str, int]], partition: str, quiet: int, gone: set[int]
) -> None:
    """The buffer grows from ``quiet`` turns on, and may lose some of them."""
    minutes = accumulate(gap for _, gap in said)
    turns = [
        turn(number, session=session, minutes=at)
        for number, ((session, _), at) in enumerate(zip(said, minutes, strict=True))
    ]
    config = GamConfig.model_validate({"partition": partition, "window_tokens": 16})
    earlier = GamState(turns=quiet, buffer=tuple(range(min(quiet, len(turns)))))
    now = GamState(turns=len(turns), buffer=tuple(n for n in range(len(turns)) if n not in gone))
    if asyncio.run(next_trigger(earlier, turns, config, words)) is None:
        again = asyncio.run(next_trigger(now, turns, config, words))
        assert again == asyncio.run(next_trigger(now, turns, config, words, quiet=earlier.buffer))


@pytest.mark.parametrize(
    ("config", "count", "expected"),
    [
        ({"buffer_tokens": 36}, 9, None),
        ({"buffer_tokens": 35}, 9, Trigger("overflow", NINE)),
        (
            {"partition": "session", "buffer_tokens": 32},
            10,
            Trigger("session_end", tuple(range(9))),
        ),
        ({"partition": "session", "buffer_tokens": 32}, 9, None),
        ({"partition": "turns", "window_turns": 3}, 2, None),
        ({"partition": "turns", "window_turns": 3}, 3, Trigger("overflow", (0, 1, 2))),
        ({"partition": "window", "window_tokens": 16}, 4, None),
        ({"partition": "window", "window_tokens": 16}, 5, Trigger("overflow", (0, 1, 2, 3, 4))),
        ({"without": "ssm"}, 1, Trigger("overflow", (0,))),
    ],
)
async def test_each_partition_has_occasions_of_its_own(
    config: dict[str, object], count: int, expected: Trigger | None
) -> None:
    """Turns of four tokens, hours apart, the tenth of another session."""
    pauses = {"partition": "session"}.items() <= config.items()
    turns = [turn(n, minutes=500 * n if pauses else None) for n in range(9)]
    turns.append(turn(9, session="2"))
    options = GamConfig.model_validate(config)
    assert await next_trigger(appended(count), turns, options, words) == expected


# Where


@pytest.mark.parametrize(
    ("config", "look", "parts"),
    [
        (GamConfig(partition="session"), Trigger("session_end", (0, 1, 2)), ((0, 1, 2),)),
        (GamConfig(partition="turns"), Trigger("overflow", (0, 1, 2)), ((0, 1, 2),)),
        (GamConfig(without="ssm"), Trigger("overflow", (4,)), ((4,),)),
        (GamConfig(partition="window"), Trigger("overflow", (0, 1, 2)), ((0, 1),)),
        (GamConfig(partition="window"), Trigger("overflow", (0,)), ((0,),)),
        (GamConfig(partition="window"), Trigger("flush", (0, 1)), ((0, 1),)),
    ],
)
async def test_other_partitions_ask_no_model(
    config: GamConfig, look: Trigger, parts: tuple[tuple[int, ...], ...]
) -> None:
    client, engine = llm()
    turns = [turn(n) for n in range(5)]
    assert await find_cut(client, look, turns, config, before=()) == Cut(parts)
    assert engine.requests == []


@pytest.mark.parametrize(
    ("trigger", "indices", "parts"),
    [
        ("session_end", (), ()),
        ("session_end", (1,), ((0, 1),)),
        ("pause", (0, 2), ((0,), (1, 2))),
        ("overflow", (), ((0, 1, 2, 3),)),
        ("overflow", (1,), ((0, 1),)),
        ("flush", (), ((0, 1, 2, 3),)),
        ("flush", (1,), ((0, 1), (2, 3))),
    ],
)
async def test_what_follows_the_last_boundary_stays_unless_it_must_go(
    trigger: str, indices: tuple[int, ...], parts: tuple[tuple[int, ...], ...]
) -> None:
    client, _ = llm(found(*indices))
    look = Trigger(trigger, (0, 1, 2, 3))  # type: ignore[arg-type]
    where = await find_cut(client, look, [turn(n) for n in range(4)], GamConfig(), before=())
    assert (where.parts, where.boundaries) == (parts, indices)
    assert where.call_key is not None


async def test_indices_are_places_in_what_is_shown_and_become_turns() -> None:
    client, engine = llm(found(2))
    look = Trigger("session_end", (5, 6, 7))
    where = await find_cut(client, look, [turn(n) for n in range(8)], GamConfig(), before=(2, 4))
    assert where.parts == ((5,),)
    prompt = engine.requests[0].messages[-1].content
    assert "[0] Ann: word2 two three\n[1] Ann: word4 two three\n[2] Ann: word5" in prompt


async def test_a_reply_that_stays_invalid_is_said_and_cuts_nothing_that_need_not_be() -> None:
    turns = [turn(n) for n in range(3)]
    client, _ = llm(*["no"] * 6)
    ended = await find_cut(client, Trigger("session_end", (0, 1, 2)), turns, GamConfig(), before=())
    assert ended.parts == ()
    assert ended.problem
    full = await find_cut(
        client, Trigger("overflow", (0, 1, 2)), turns, GamConfig(seed=1), before=()
    )
    assert full.parts == ((0, 1, 2),)
    assert full.problem


# Noise


@st.composite
def segmented(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Turns that are looked at, and boundaries among them."""
    first = draw(st.integers(0, 5))
    seen = tuple(range(first, first + draw(st.integers(2, 20))))
    return seen, tuple(sorted(draw(st.sets(st.sampled_from(seen[:-1])))))


@given(made=segmented(), noise=st.just(0.0) | st.floats(0, 1), seed=st.integers())
def test_whatever_the_noise_boundaries_are_places_between_turns_and_not_too_many(
    made: tuple[tuple[int, ...], tuple[int, ...]], noise: float, seed: int
) -> None:
    seen, boundaries = made
    noisy = perturb(boundaries, seen, noise, random.Random(seed))
    assert list(noisy) == sorted(set(noisy))
    assert set(noisy) <= set(seen[:-1])
    assert len(noisy) <= 2 * len(boundaries)
    assert noise or noisy == boundaries


@given(place=st.integers(0, 18), seed=st.integers())
def test_a_boundary_is_missed_or_moved_by_two_turns_at_most(place: int, seed: int) -> None:
    class NoExtras(random.Random):
        def sample(self, population: Sequence[int], k: int) -> list[int]:  # type: ignore[override]
            assert k == 1, "one was drawn, for η is 1"
            return list(population[:0])

    noisy = perturb((place,), tuple(range(20)), 1.0, NoExtras(seed))
    assert len(noisy) <= 1
    assert all(abs(moved - place) <= SHIFT for moved in noisy)


def test_each_extra_cut_is_drawn_so_that_few_boundaries_have_some_too() -> None:
    seen, boundaries, rounds = tuple(range(50)), (10, 20, 30), 2000
    found = [perturb(boundaries, seen, 0.1, random.Random(seed)) for seed in range(rounds)]
    near = {place + shift for place in boundaries for shift in range(-SHIFT, SHIFT + 1)}
    extras = sum(cut not in near for cuts in found for cut in cuts) / rounds
    assert extras == pytest.approx(0.3 * (len(seen) - len(near)) / len(seen), abs=0.05)


def test_half_of_the_errors_are_misses_and_extras_are_in_proportion() -> None:
    seen, boundaries = tuple(range(4001)), tuple(range(0, 4000, 10))
    noisy = perturb(boundaries, seen, 0.4, random.Random(0))
    kept = set(noisy) & set(boundaries)
    assert 0.55 < len(kept) / len(boundaries) < 0.65
    assert len(noisy) / len(boundaries) == pytest.approx(0.6 + 0.2 + 0.4, abs=0.05)


def test_a_detector_that_is_named_cuts_in_the_preset_small_too() -> None:
    assert SmallGamConfig().cut_by == "session"
    small = SmallGamConfig(boundaries="topics")
    assert (small.cut_by, small.detector) == ("semantic", "topics")


@pytest.mark.parametrize("cut", [{"partition": "session"}, {"without": "ssm"}])
def test_a_detector_that_nothing_would_ask_is_refused(cut: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="the options of gam: no boundaries are looked for where"):
        choose_kind("gam", {"boundaries": "topics", **cut}, lambda: "small")
