from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from mgl.errors import EngineRejected, EngineUnavailable
from mgl.llm.control import MARKS, unmark
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.servers import ServerEmbedder, ServerReranker
from tests.openai.answering import LLAMA, MODEL, OTHER, Answered, Route, Server, models, serving

NAMES = ("example/Words", "words")
LIMIT = 40


def embeddings(body: Any) -> Any:
    """As servers do it: in any order, and refused whole where one text is too long."""
    if any(len(text) > LIMIT for text in body["input"]):
        said = "This model's maximum context length is 40 tokens"
        return Answered(400, {"error": {"message": said}})
    vectors = WordEmbedder().embed(body["input"])
    items = [
        {"index": number, "embedding": [3 * float(x) for x in vector], "object": "embedding"}
        for number, vector in enumerate(vectors)
    ]
    return {"object": "list", "data": items[::-1]}


def routes(answer: Route = embeddings) -> dict[str, Route]:
    return {"/v1/models": models("example/Words"), "/v1/embeddings": answer}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(routes()) as running:
        yield running


Opener = Callable[..., ServerEmbedder]


@pytest.fixture
def embedder() -> Iterator[Opener]:
    """Opens embedders of a server, and closes them after the test."""
    with ExitStack() as opened:

        def make(url: str, **options: Any) -> ServerEmbedder:
            settings = {"names": NAMES, "model_id": "words@main+openai", "dims": 64, **options}
            made = ServerEmbedder(url, **settings)
            opened.callback(made.close)
            return made

        yield make


def test_vectors_come_in_the_order_of_the_texts(server: Server, embedder: Opener) -> None:
    texts = [f"Ann met number {number}" for number in range(150)]
    made = embedder(server.url).embed(texts)
    assert made == pytest.approx(WordEmbedder().embed(texts), abs=1e-6)
    bodies = server.bodies("/v1/embeddings")
    assert sorted(len(body["input"]) for body in bodies) == [22, 64, 64]
    assert {body["model"] for body in bodies} == {"example/Words"}


def test_queries_have_their_prefix_and_passages_none(server: Server, embedder: Opener) -> None:
    asking = embedder(server.url, query_prefix="Query: ")
    asking.embed(["Ann"], task="query")
    asking.embed(["Ann"])
    assert [body["input"] for body in server.bodies("/v1/embeddings")] == [["Query: Ann"], ["Ann"]]


def test_dims_below_the_servers_cut_its_vectors(server: Server, embedder: Opener) -> None:
    made = embedder(server.url, dims=8).embed(["Ann met Bo in Rome"])
    whole = WordEmbedder().embed(["Ann met Bo in Rome"])[0, :8]
    assert made[0] == pytest.approx(whole / np.linalg.norm(whole), abs=1e-5)
    with pytest.raises(EngineRejected):
        embedder(server.url, dims=65).embed(["Ann"])


def test_a_text_that_is_too_long_is_halved_until_it_fits(server: Server, embedder: Opener) -> None:
    long = "ann " + 100 * "x"
    made = embedder(server.url).embed(["Bo", long, "Cy"])
    assert made == pytest.approx(WordEmbedder().embed(["Bo", long[:26], "Cy"]), abs=1e-6)


def test_a_server_finds_no_control_token_in_a_text(server: Server, embedder: Opener) -> None:
    embedder(server.url).embed(["Ann [SEP] Bo </s>", "Ann [1] Bo"])
    ((spelled, plain),) = [body["input"] for body in server.bodies("/v1/embeddings")]
    assert "[SEP]" not in spelled
    assert "</s>" not in spelled
    assert unmark(spelled, MARKS[0]) == "Ann [SEP] Bo </s>"
    assert plain == "Ann [1] Bo"


@pytest.mark.parametrize(
    "answer",
    [
        {"data": []},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": [None]}]},
        {"data": [{"index": 0, "embedding": [1.0]}] * 2},
        {"data": [{"index": 0, "embedding": [float("nan")]}]},
    ],
)
def test_an_answer_that_is_none_is_refused(answer: Any, embedder: Opener) -> None:
    with serving(routes(answer)) as server, pytest.raises(EngineRejected):
        embedder(server.url, dims=1).embed(["Ann"])


def test_a_server_with_another_model_or_none_is_told(server: Server, embedder: Opener) -> None:
    with pytest.raises(EngineRejected):
        embedder(server.url, names=("example/Other",)).embed(["Ann"])
    with pytest.raises(EngineUnavailable):
        embedder("http://127.0.0.1:9").embed(["Ann"])


QUERY = "Who lost the ring?"
TEXTS = ["Ann met Bo.", "The ring was lost.", "Rings are lost where sailors are."]


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


async def test_a_reranker_finds_no_control_token_in_a_text() -> None:
    with serving(answering(OTHER, logits=False)) as server:
        reranker = ServerReranker(server.url, names=(MODEL,), model_id="m")
        await reranker.scores("Who? <|im_end|>", ["yes<|im_end|>"])
        await reranker.aclose()
    (body,) = server.bodies("/v1/rerank")
    assert "<|im_end|>" not in body["query"] + body["documents"][0]


@pytest.mark.parametrize(
    "results",
    [
        None,
        [{"index": 1, "relevance_score": 0.5}],
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
