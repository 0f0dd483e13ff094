from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.benchmarks.base import Item
from mgl.benchmarks.drawing import sample, select
from mgl.errors import UsageError
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
def test_each_category_and_source_has_its_share_rounded(
    of: list[tuple[str, str, int]], limit: int, seed: int
) -> None:
    all_ = items(of)
    some = sample(all_, limit=limit, seed=seed)
    assert len(some) == min(limit, len(all_))
    assert [int(item.id) for item in some] == sorted(int(item.id) for item in some)
    assert sample(all_, limit=limit, seed=seed) == some
    for kind in ("category", "source"):
        drawn = Counter(getattr(item, kind) for item in some)
        for name, size in Counter(getattr(item, kind) for item in all_).items():
            assert abs(drawn[name] - size * len(some) / len(all_)) < 1


@given(st.lists(kinds, min_size=1), st.integers(1, 30), st.integers())
def test_pairs_stay_together(of: list[tuple[str, str, int]], limit: int, seed: int) -> None:
    all_ = items(of)
    try:
        some = {item.id for item in sample(all_, limit=limit, seed=seed)}
    except UsageError:
        assert any(item.pair for item in all_)
        return
    assert 0 < len(some) <= limit or len(some) == len(all_)
    together = {(i.source, i.category, i.pair): set() for i in all_ if i.pair}
    for item in all_:
        if item.pair:
            together[item.source, item.category, item.pair].add(item.id)
    for pair in together.values():
        assert pair <= some or not pair & some


LOCOMO = {"single": 418, "temporal": 156, "multi": 142, "open": 46}


@pytest.mark.parametrize("limit", [12, 50])
def test_every_item_of_locomo_is_as_likely_as_any_other(limit: int) -> None:
    """Of 762 items 24 were never drawn at 50, 49 never at 20, and no open-domain one at 12.

    Sources have unequal shares of the categories, as LoCoMo's conversations have.
    """
    random, seeds = Random(1), 400
    of = [
        (random.choices("abcdefghij", weights=range(1, 11))[0], name, 0)
        for name, size in LOCOMO.items()
        for _ in range(size)
    ]
    all_ = items(of)
    drawn = Counter(i.id for seed in range(seeds) for i in sample(all_, limit=limit, seed=seed))
    share = limit / len(all_)
    deviations = [
        (drawn[item.id] - seeds * share) / (seeds * share * (1 - share)) ** 0.5 for item in all_
    ]
    assert max(map(abs, deviations)) < 4.5
    assert sum(one**2 for one in deviations) / len(all_) == pytest.approx(1, abs=0.25)


def test_the_seed_decides_and_a_limit_that_no_pair_fits_is_refused() -> None:
    all_ = items([("a", "x", 0)] * 100)
    assert sample(all_, limit=5, seed=0) != sample(all_, limit=5, seed=1)
    assert sample(all_, limit=None, seed=0) == sample(all_, limit=100, seed=1) == all_
    with pytest.raises(UsageError):
        sample(items([("a", "x", 1), ("a", "x", 1)]), limit=1, seed=0)


def test_items_are_chosen_by_source_category_and_label() -> None:
    labels = ({"level": "hard"}, {"level": "easy", "film": "a"}, {})
    all_ = [
        replace(item, labels=own)
        for item, own in zip(
            items([("a", "x", 0), ("a", "y", 0), ("b", "x", 0)]), labels, strict=True
        )
    ]
    assert select(all_, sources=["a"], categories=["x"]) == all_[:1]
    assert select(all_, labels={"level": "easy"}) == all_[1:2]
    assert select(all_, labels={"level": "hard", "film": "a"}) == []
    assert select(all_) == select(all_, labels={}) == all_
    for chosen, known in (
        ({"sources": ["c"]}, "a, b"),
        ({"labels": {"level": "no"}}, "easy, hard"),
    ):
        with pytest.raises(UsageError) as caught:
            select(all_, **chosen)  # type: ignore[arg-type]
        assert known in caught.value.hint


def test_single_items_are_chosen_by_their_ids_or_questions() -> None:
    first, second, *_ = all_ = items([("a", "x", 0), ("a", "y", 0), ("b", "x", 0)])
    assert select(all_, asks=[second.id]) == [second]
    why = replace(first, question=Question("Why is Xodar given to Carter as a slave?"))
    assert select([why, second], asks=[why.question.text]) == [why]
    with pytest.raises(UsageError, match="no item is called or asks 'nobody'"):
        select(all_, asks=[second.id, "nobody"])
