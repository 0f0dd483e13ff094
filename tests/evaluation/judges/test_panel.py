"""Who judges: which verdicts are asked for, by what name, and how."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from mgl.evaluation.judges.seat_panel import seat_panel

from mgl.evaluation.judges.judging import JUDGING

names = st.sampled_from(["entailment", "correctness", "mindgraph"])
models = st.sampled_from(["a", "b", "c"])


def test_one_judge_is_known_by_its_name_alone() -> None:
    (seat,) = seat_panel("entailment", "a", [])
    assert (seat.key, seat.judge, seat.model) == ("entailment", "entailment", "a")
    assert seat.sampling == JUDGING


def test_without_a_judge_nothing_is_asked() -> None:
    assert seat_panel(None, None, [], repeats=3) == ()


def test_repeats_are_warm_and_far_enough_apart_for_what_is_drawn_anew() -> None:
    first, *again = seat_panel("entailment", "a", [], repeats=3)
    assert first.sampling.temperature == 0
    assert all(seat.sampling.temperature > 0 for seat in again)
    seeds = sorted(seat.sampling.seed for seat in (first, *again))
    assert min(b - a for a, b in pairwise(seeds)) > 10


@given(st.lists(st.tuples(names, models), min_size=1, max_size=6, unique=True), st.integers(0, 3))
@settings(deadline=None, max_examples=20)
def test_no_two_verdicts_have_one_key(judges: list[tuple[str, str]], repeats: int) -> None:
    (judge, model), *others = judges
    seats = seat_panel(judge, model, others, repeats=repeats)
    assert len({seat.key for seat in seats}) == len(seats) == len(judges) * (repeats + 1)
