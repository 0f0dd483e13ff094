from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.base import Item
from mgl.errors import UsageError
from mgl.evaluation.runs.plan import sample, select
from mgl.types import Question

kinds = st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 3))


def items(of: list[tuple[str, str, int]]) -> list[Item]:
    """Items of (source, category, pair); pair 0 is none."""
    return [
        Item(str(n), source, Question("?"), category=category, pair=str(pair) if pair else "")
        for n, (source, category, pair) in enumerate(of)
    ]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.just(0)), min_size=1),
    st.integers(1, 30),
    st.integers(),
)
def test_it_draws_the_limit_in_order_the_same_each_time_and_more_with_a_larger_one(
    of: list[tuple[str, str, int]], limit: int, seed: int
) -> None:
    all_ = items(of)
    some = sample(all_, limit=limit, seed=seed)
    assert len(some) == min(limit, len(all_))
    assert [int(item.id) for item in some] == sorted(int(item.id) for item in some)
    assert sample(all_, limit=limit, seed=seed) == some
    assert {item.id for item in some} <= {
        item.id for item in sample(all_, limit=limit + 1, seed=seed)
    }


@given(st.lists(kinds, min_size=1), st.integers(1, 30), st.integers())
def test_pairs_stay_together(of: list[tuple[str, str, int]], limit: int, seed: int) -> None:
    all_ = items(of)
    try:
        some = {item.id for item in sample(all_, limit=limit, seed=seed)}
    except UsageError:
        assert all(item.pair for item in all_)
        return
    assert 0 < len(some) <= limit or len(some) == len(all_)
    together = {(i.source, i.category, i.pair): set() for i in all_ if i.pair}
    for item in all_:
        if item.pair:
            together[item.source, item.category, item.pair].add(item.id)
    for pair in together.values():
        assert pair <= some or not pair & some


def test_it_is_spread_over_sources_and_categories() -> None:
    of = [("a", "x", 0)] * 50 + [(source, category, 0) for source in "abcd" for category in "xyz"]
    some = sample(items(of), limit=12, seed=1)
    assert max(Counter(item.source for item in some).values()) == 3
    assert max(Counter(item.category for item in some).values()) == 4


def test_the_seed_decides() -> None:
    all_ = items([("a", "x", 0)] * 100)
    assert sample(all_, limit=5, seed=0) != sample(all_, limit=5, seed=1)
    assert sample(all_, limit=None, seed=0) == sample(all_, limit=100, seed=1) == all_


def test_a_limit_that_no_pair_fits() -> None:
    with pytest.raises(UsageError):
        sample(items([("a", "x", 1), ("a", "x", 1)]), limit=1, seed=0)


def test_sources_and_categories_are_chosen_by_name() -> None:
    all_ = items([("a", "x", 0), ("a", "y", 0), ("b", "x", 0)])
    assert [item.id for item in select(all_, sources=["a"], categories=["x"])] == ["0"]
    assert select(all_) == all_
    with pytest.raises(UsageError) as caught:
        select(all_, sources=["c"])
    assert "a, b" in caught.value.hint


def test_items_are_chosen_by_their_labels() -> None:
    labels = ({"level": "hard"}, {"level": "easy", "film": "a"}, {})
    all_ = [Item(str(n), "a", Question("?"), labels=own) for n, own in enumerate(labels)]
    assert [item.id for item in select(all_, labels={"level": "easy"})] == ["1"]
    assert select(all_, labels={"level": "hard", "film": "a"}) == []
    assert select(all_, labels={}) == all_
    with pytest.raises(UsageError) as caught:
        select(all_, labels={"level": "none"})
    assert "easy, hard" in caught.value.hint
