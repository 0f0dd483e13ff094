from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import EngineRejected
from mgl.llm.base import Completion, Request, TokenUsage
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.rerankers.identity import IdentityReranker
from mgl.retrieval.rerankers.language_model import YesNoReranker
from mgl.retrieval.rerankers.server import ServerReranker
from mgl.retrieval.rerankers.similarity import FITTED, Sigmoid, SimilarityReranker
from tests.llm.server import LLAMA, MODEL, OTHER, Route, serving

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


@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from(sorted(FITTED)))
def test_a_fitted_sigmoid_rises_with_the_cosine(one: float, other: float, name: str) -> None:
    low, high = FITTED[name](np.array(sorted((one, other)), dtype=np.float32))
    assert 0 <= low <= high <= 1


async def test_similarity_by_hand() -> None:
    embedder = WordEmbedder()
    embedder.model_id = "all-minilm-l6-v2@53aa51172d14"
    reranker = SimilarityReranker(embedder)
    cosines = embedder.embed(TEXTS) @ embedder.embed([QUERY])[0]
    expected = [1 / (1 + math.exp(7.7 - 8.1 * cosine)) for cosine in cosines.tolist()]
    assert await reranker.scores(QUERY, TEXTS) == pytest.approx(expected, rel=1e-4)
    assert reranker.model_id == "all-minilm-l6-v2@53aa51172d14 by similarity"
    flat = SimilarityReranker(embedder, Sigmoid(0.0, 0.0))
    assert (await flat.scores(QUERY, TEXTS)).tolist() == [0.5, 0.5, 0.5]
    assert (await reranker.scores(QUERY, [])).shape == (0,)


def test_a_similarity_that_was_not_fitted_says_so() -> None:
    assert SimilarityReranker(WordEmbedder()).model_id == "fake/words:64 by similarity, unfitted"


def answering(kind: dict[str, Route], *, logits: bool) -> dict[str, Route]:
    """A server that gives a text the probability 1 / (1 + its number of words)."""

    def rerank(body: Any) -> Any:
        chances = [1 / (1 + len(text.split())) for text in body["documents"]]
        results = [
            {"index": at, "relevance_score": math.log(p / (1 - p)) if logits else p}
            for at, p in enumerate(chances)
        ]
        return {"results": sorted(results, key=lambda one: one["relevance_score"])}

    return {**kind, "/v1/rerank": rerank}


@pytest.mark.parametrize(("kind", "logits"), [(OTHER, False), (LLAMA, True)])
async def test_a_servers_scores_become_probabilities_in_order(
    kind: dict[str, Route], logits: bool
) -> None:
    texts = ["ring " * (1 + number % 7) for number in range(100)]
    with serving(answering(kind, logits=logits)) as server:
        reranker = ServerReranker(server.url, names=(MODEL,), model_id="m")
        scores = await reranker.scores(QUERY, texts)
        assert (await reranker.scores(QUERY, [])).shape == (0,)
        await reranker.aclose()
    assert scores == pytest.approx([1 / (2 + number % 7) for number in range(100)], rel=1e-5)
    bodies = server.bodies("/v1/rerank")
    assert sorted(len(body["documents"]) for body in bodies) == [36, 64]
    assert {(body["model"], body["query"]) for body in bodies} == {(MODEL, QUERY)}


@pytest.mark.parametrize(
    "results",
    [
        None,
        [{"index": 1, "relevance_score": 0.5}],
        [{"index": 0, "relevance_score": None}],
        [{"index": 0, "relevance_score": 3.5}],
        [{"index": 0, "relevance_score": float("nan")}],
        [{"index": 0, "relevance_score": 0.5}] * 2,
    ],
)
async def test_an_answer_that_scores_nothing_is_refused(results: Any) -> None:
    with serving({**OTHER, "/v1/rerank": {"results": results}}) as server:
        reranker = ServerReranker(server.url, names=(MODEL,), model_id="m")
        with pytest.raises(EngineRejected):
            await reranker.scores(QUERY, ["a"])
        await reranker.aclose()
