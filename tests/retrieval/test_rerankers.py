from __future__ import annotations

import math

import numpy as np
import pytest

from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.rerankers import IdentityReranker, SimilarityReranker

QUERY = "Who lost the ring?"
TEXTS = ["Ann met Bo.", "The ring was lost.", "Rings are lost where sailors are."]


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
async def test_identity_keeps_the_order(count: int) -> None:
    scores = await IdentityReranker().scores(QUERY, ["same"] * count)
    assert scores.shape == (count,)
    assert (np.diff(scores) < 0).all()
    assert ((scores > 0) & (scores <= 1)).all()


async def test_similarity_by_hand() -> None:
    embedder = WordEmbedder()
    embedder.model_id = "all-minilm-l6-v2@53aa51172d14"
    reranker = SimilarityReranker(embedder)
    cosines = embedder.embed(TEXTS) @ embedder.embed([QUERY])[0]
    expected = [1 / (1 + math.exp(7.7 - 8.1 * cosine)) for cosine in cosines.tolist()]
    assert await reranker.scores(QUERY, TEXTS) == pytest.approx(expected, rel=1e-4)
    assert reranker.model_id == "all-minilm-l6-v2@53aa51172d14 by similarity"
    assert (await reranker.scores(QUERY, [])).shape == (0,)


def test_a_similarity_that_was_not_fitted_says_so() -> None:
    assert SimilarityReranker(WordEmbedder()).model_id == "fake/words:64 by similarity, unfitted"
