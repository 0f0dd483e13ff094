from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.retrieval.base import Hit
from mgl.retrieval.ranking import best, fuse_hits, reciprocal_rank_fusion


def test_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], k=60)
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])
    hits = fuse_hits([[Hit(1, 9.0), Hit(2, 8.0)], [Hit(3, 0.3), Hit(1, 0.2)]], k=60)
    assert [hit.id for hit in hits] == [1, 3, 2]
    assert [hit.score for hit in hits] == pytest.approx([1 / 61 + 1 / 62, 1 / 61, 1 / 62])


@given(st.lists(st.integers(0, 5), unique=True), st.integers(0, 7))
def test_the_best_are_the_first_of_all_sorted(values: list[int], k: int) -> None:
    scores = np.array(values, dtype=np.float32)
    assert best(scores, k) == sorted(enumerate(map(float, values)), key=lambda one: -one[1])[:k]
