from __future__ import annotations

import math

import numpy as np
import pytest

from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.rerankers import IdentityReranker, SimilarityReranker, YesNoReranker

QUERY = "Who lost the ring?"
TEXTS = ["Ann met Bo.", "The ring was lost.", "Rings are lost where sailors are."]


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
async def test_identity_keeps_the_order(count: int) -> None:
    scores = await IdentityReranker().scores(QUERY, ["same"] * count)
    assert scores.shape == (count,)
    assert (np.diff(scores) < 0).all()
    assert ((scores > 0) & (scores <= 1)).all()


async def test_a_language_models_yes_is_the_score() -> None:
    def says(request: Request) -> Completion:
        about = request.messages[-1].content
        assert QUERY in about
        chance = 0.75 if "lost." in about else 0.25
        word = "Yes" if chance > 0.5 else "No"
        told = math.log(chance if word == "Yes" else 1 - chance)
        return Completion(word, "stop", TokenUsage(1, 1), logprobs=(told,))

    llm = Client(ScriptedEngine([says] * 3), MemoryCallLog())
    reranker = YesNoReranker(llm)
    scores = await reranker.scores(QUERY, TEXTS)
    assert scores == pytest.approx([0.25, 0.75, 0.25])
    assert reranker.model_id == f"{llm.model_id}+yes-no"
    assert (await reranker.scores(QUERY, [])).shape == (0,)


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
