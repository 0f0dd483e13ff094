from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.retrieval import Bm25, reciprocal_rank_fusion

TEXTS = ["Ann met Bo in Rome.", "The ring was lost at sea.", "Nobody forgave the losing sailors."]


def test_a_query_finds_its_text_by_stems() -> None:
    scores = Bm25(TEXTS).scores("Who lost rings?")
    assert scores.argmax() == 1
    assert scores.shape == (3,)


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "?!"])
def test_a_query_that_shares_nothing_scores_nothing(query: str) -> None:
    assert not Bm25(TEXTS).scores(query).any()


@pytest.mark.parametrize("texts", [[], [""], ["the", "?!"]])
def test_texts_without_words_are_no_error(texts: list[str]) -> None:
    assert Bm25(texts).scores("ring").tolist() == [0.0] * len(texts)


def test_fusion_by_hand() -> None:
    fused = reciprocal_rank_fusion([[3.0, 2.0, 1.0], [1.0, 3.0, 2.0]], k=60)
    assert fused == pytest.approx([1 / 61 + 1 / 63, 1 / 62 + 1 / 61, 1 / 63 + 1 / 62])


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.integers(1, 100))
def test_fusing_a_list_with_itself_keeps_its_order(scores: list[float], k: int) -> None:
    fused = reciprocal_rank_fusion([scores, scores], k=k)
    assert np.argsort(-fused, kind="stable").tolist() == (
        np.argsort(-np.asarray(scores), kind="stable").tolist()
    )
