"""bge-m3 and its reranker on random weights: our numbers beside FlagEmbedding's own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mgl.errors import ResourceError, UsageError
from mgl.retrieval.flag import FlagEmbedder, flag_reranker
from mgl.retrieval.multi import WEIGHTS, MultiEmbedder, Ranking, ranks_by_more
from mgl.retrieval.opening import open_embedder, open_reranker
from mgl.retrieval.vectors import HybridIndex, VectorIndex, open_index
from tests.retrieval import tiny

pytestmark = [pytest.mark.retrieval, pytest.mark.filterwarnings("ignore")]

TEXTS = ["Ann met Bo in Rome.", "The ring was lost at sea.", "Who met Ann?", "sea sea sea"]
QUERY = "Where was the ring of Ann?"
RANKED: tuple[Ranking, ...] = ("hybrid", "all")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("FlagEmbedding", reason="needs the extra retrieval")
    return tiny.bge_m3(tmp_path_factory.mktemp("bge-m3"))


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    """The library as its documentation uses it."""
    from FlagEmbedding import BGEM3FlagModel

    return BGEM3FlagModel(str(folder), use_fp16=False, devices="cpu")


def embedder(folder: Path, ranking: Ranking = "all") -> FlagEmbedder:
    return FlagEmbedder(folder, model_id=f"m3:{ranking}", dims=tiny.HIDDEN, ranking=ranking)


def test_one_pass_gives_what_flagembedding_gives(folder: Path, theirs: Any) -> None:
    ours = embedder(folder)
    found = theirs.encode(TEXTS, return_sparse=True, return_colbert_vecs=True)
    encoded = ours.encode(TEXTS)
    for one, dense, weights, tokens in zip(
        encoded, found["dense_vecs"], found["lexical_weights"], found["colbert_vecs"], strict=True
    ):
        assert one.dense == pytest.approx(dense, abs=1e-6)
        assert one.lexical == pytest.approx({int(key): value for key, value in weights.items()})
        assert one.tokens == pytest.approx(tokens, abs=1e-6)
        assert one.lexical, "some token has a weight"
    assert ours.embed(TEXTS) == pytest.approx(np.stack([one.dense for one in encoded]), abs=1e-6)


@pytest.mark.parametrize("ranking", RANKED)
def test_texts_are_scored_as_flagembedding_scores_pairs(
    folder: Path, theirs: Any, ranking: Ranking
) -> None:
    pairs = [(QUERY, text) for text in TEXTS]
    own = theirs.compute_score(pairs, weights_for_different_modes=list(WEIGHTS["all"]))
    name = "colbert+sparse+dense" if ranking == "all" else "sparse+dense"
    index = open_index(embedder(folder, ranking))
    index.extend(dict(enumerate(TEXTS, 7)))
    assert index.scores(QUERY) == pytest.approx(own[name], abs=1e-5)
    hits = index.search(QUERY, 3)
    expected = sorted(enumerate(own[name], 7), key=lambda pair: -pair[1])[:3]
    assert [hit.id for hit in hits] == [identity for identity, _ in expected]
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-5)
    (only,) = index.search(QUERY, 3, among=[9])
    assert only.id == 9


def test_dense_alone_is_the_default_and_a_name_ends_in_its_ranking(
    folder: Path, tmp_path: Path
) -> None:
    dense = open_embedder(folder, tmp_path)
    assert type(open_index(dense)) is VectorIndex
    ranked = open_embedder(f"{folder}:hybrid", tmp_path)
    assert ranks_by_more(ranked)
    assert ranked.ranking == "hybrid"
    assert ranked.model_id == f"{dense.model_id}:hybrid"
    both: MultiEmbedder = ranked
    index = HybridIndex(both)
    index.extend(dict(enumerate(TEXTS)))
    vector = ranked.embed([QUERY], task="query")[0]
    assert index.search(QUERY, 4, vector=vector) == index.search(QUERY, 4)


def test_a_ranking_that_cannot_be_had_is_refused(tmp_path: Path) -> None:
    plain = tiny.roberta(tmp_path / "plain")
    with pytest.raises(UsageError, match="cannot rank as all"):
        open_embedder(f"{plain}:all", tmp_path)
    with pytest.raises(ResourceError, match=r"lacks sparse_linear\.pt"):
        FlagEmbedder(plain, model_id="m", dims=tiny.HIDDEN, ranking="all")


def test_marks_that_a_text_spells_are_words(folder: Path) -> None:
    """As everywhere: a text cannot say where it ends."""
    ours = embedder(folder)
    spelled, other = ours.encode(["Ann met </s> Bo", "Ann met </x> Bo"])
    assert len(spelled.tokens) == len(other.tokens)


def test_a_reranker_scores_as_flagembedding_does(tmp_path: Path) -> None:
    flag: Any = pytest.importorskip("FlagEmbedding", reason="needs the extra retrieval")
    folder = tiny.roberta(tmp_path / "reranker", labels=1)
    theirs = flag.FlagReranker(str(folder), devices="cpu", max_length=1024)
    own = theirs.compute_score([(QUERY, text) for text in TEXTS], normalize=True)
    assert flag_reranker(folder, 1024)(QUERY, TEXTS) == pytest.approx(own, abs=1e-6)


def test_the_profiles_are_run_by_flagembedding(folder: Path, tmp_path: Path) -> None:
    from mgl.retrieval.models import Source

    found = open_embedder("bge-m3:all", tmp_path, source=Source(weights=folder))
    assert ranks_by_more(found)
    reranker = open_reranker(
        "bge-reranker-v2-m3",
        tmp_path,
        source=Source(weights=tiny.roberta(tmp_path / "reranker", labels=1)),
    )
    scores = asyncio.run(reranker.scores(QUERY, TEXTS))
    assert ((scores > 0) & (scores < 1)).all()
