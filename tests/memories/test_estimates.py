from __future__ import annotations

import pytest

from mgl.memories.estimates import Estimate, format_duration
from mgl.store.calls import Pace

READ, CHECK = Pace(10, 1000, 100, 30.0), Pace(20, 400, 20, 15.0)


def test_each_stage_takes_its_own_pace() -> None:
    cost = Estimate(6, 600).at([(READ, 2), (CHECK, 4)])
    assert cost.seconds == pytest.approx(2 * 3.0 + 4 * 0.75)
    assert cost.output_tokens == 2 * 10 + 4 * 1
    assert cost.basis == ("30 calls of this model on this machine",)


def test_a_stage_that_was_never_called_takes_the_mean_of_the_others() -> None:
    assert Estimate(6, 600).at([(READ, 2), (None, 4)]).seconds == pytest.approx(6 * 3.0)


def test_what_is_known_of_the_tokens_stays_and_without_a_pace_nothing_is_added() -> None:
    assert Estimate(6, 600, 90).at([(READ, 6)]).output_tokens == 90
    assert Estimate(6, 600).at([(None, 6)]) == Estimate(6, 600)
    assert Estimate(0, 0).at([(None, 0)]).seconds == 0
    assert Estimate(0, 0).at([(READ, 0)]).basis == ()


def test_a_sum_is_known_where_its_parts_are() -> None:
    one, other = Estimate(1, 10, 5, 2.0, ("a",)), Estimate(2, 20, 5, None, ("a", "b"), True)
    assert one + one == Estimate(2, 20, 10, 4.0, ("a",))
    assert one + other == Estimate(3, 30, 10, None, ("a", "b"), True)


def test_it_is_said_in_a_line() -> None:
    assert Estimate(0, 0).describe() == "no model call"
    assert Estimate(1, 10).describe() == "1 model call, 10 tokens in, unknown time"
    bound = Estimate(1200, 5000.4, is_bound=True, chunks=9, done=2)
    assert bound.describe() == (
        "7 of 9 chunks: at most 1,200 model calls, 5,000 tokens in, unknown time"
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(89, "89 s"), (600, "10 min"), (5400, "1.5 h"), (172_800, "2.0 days")],
)
def test_a_duration_takes_the_largest_unit_that_fits(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said
