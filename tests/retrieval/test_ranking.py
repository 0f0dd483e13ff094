from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.retrieval.base import Hit
from mgl.retrieval.ranking import best, fuse_hits, places_of, reciprocal_rank_fusion


def test_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], k=60)
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])
    hits = fuse_hits([[Hit(1, 9.0), Hit(2, 8.0)], [Hit(3, 0.3), Hit(1, 0.2)]], k=60)
    assert [hit.id for hit in hits] == [1, 3, 2]
    assert [hit.score for hit in hits] == pytest.approx([1 / 61 + 1 / 62, 1 / 61, 1 / 62])


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_fused_hits_are_fused_scores(first: list[int], second: list[int]) -> None:
    rankings = [[Hit(identity, 0.0) for identity in order] for order in (first, second)]
    scores = [[-order.index(identity) for identity in range(6)] for order in (first, second)]
    expected = reciprocal_rank_fusion(scores)
    assert {hit.id: hit.score for hit in fuse_hits(rankings)} == pytest.approx(
        dict(enumerate(expected.tolist()))
    )


@given(st.lists(st.integers(0, 5), unique=True), st.integers(0, 7))
def test_the_best_are_the_first_of_all_sorted(values: list[int], k: int) -> None:
    scores = np.array(values, dtype=np.float32)
    assert best(scores, k) == sorted(enumerate(map(float, values)), key=lambda one: -one[1])[:k]


@given(st.sets(st.integers(-9, 9)), st.lists(st.integers(-9, 9)))
def test_places_are_those_in_the_order(known: set[int], ids: list[int]) -> None:
    ordered = sorted(known)
    places = places_of(np.array(ordered, dtype=np.int64), ids).tolist()
    assert places == [ordered.index(one) if one in known else -1 for one in ids]
