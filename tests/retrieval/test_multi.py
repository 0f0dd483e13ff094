"""The index of three representations, over an embedder of words, against sums made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mgl.retrieval.embedders import CachedEmbedder
from mgl.retrieval.multi import WEIGHTS, Ranking, score_tokens
from mgl.retrieval.vectors import HybridIndex, MultiIndex, VectorIndex, open_index
from mgl.store import Store
from tests.retrieval.words import Words

TEXTS = {
    3: "Ann met Bo in Rome.",
    5: "The ring was lost at sea.",
    8: "Ann lost the ring of Bo.",
    9: "Rome is old.",
}
QUERY = "Who lost the ring of Ann?"


def score(ranking: Ranking, text: str) -> float:
    embedder = Words(ranking)
    asked, one = embedder.encode([QUERY, text])
    parts = (
        float(asked.dense @ one.dense),
        float(sum(weight * one.lexical.get(token, 0) for token, weight in asked.lexical.items())),
        score_tokens(asked.tokens, one.tokens),
    )
    weights = WEIGHTS[ranking]
    return sum(w * part for w, part in zip(weights, parts, strict=True)) / sum(weights)


@pytest.mark.parametrize("ranking", ["hybrid", "all"])
def test_texts_are_found_by_the_sum_of_their_scores(ranking: Ranking) -> None:
    index = open_index(Words(ranking))
    index.extend(TEXTS)
    expected = {identity: score(ranking, text) for identity, text in TEXTS.items()}
    assert index.scores(QUERY) == pytest.approx(list(expected.values()), abs=1e-5)
    assert np.isnan(index.scores(QUERY, [4])).all()
    order = sorted(expected, key=lambda identity: -expected[identity])
    assert [hit.id for hit in index.search(QUERY, 4)] == order
    assert [hit.id for hit in index.search(QUERY, 4, among=[9, 3])] == [
        identity for identity in order if identity in (3, 9)
    ]


def test_a_dense_query_is_compared_with_dense_vectors_alone() -> None:
    index, plain = open_index(Words("all")), VectorIndex(Words("dense"))
    for each in (index, plain):
        each.extend(TEXTS)
    vector = Words("all").embed([QUERY])[0]
    assert index.search(vector, 4) == plain.search(vector, 4)


def test_what_is_kept_is_read_by_another_index_and_removed_for_good(store: Store) -> None:
    def opened() -> VectorIndex:
        return open_index(Words("all"), store, "m1/texts")

    first, second = opened(), opened()
    first.extend(TEXTS)
    assert second.search(QUERY, 4) == first.search(QUERY, 4)
    second.remove([8])
    assert [hit.id for hit in first.search(QUERY, 4)] == [hit.id for hit in second.search(QUERY, 4)]
    assert 8 not in {hit.id for hit in opened().search(QUERY, 4)}
    first.extend({3: TEXTS[8]})
    assert opened().search(QUERY, 1)[0].id == 3


def test_each_text_is_encoded_once(store: Store) -> None:
    inner = Words("all")
    cached = CachedEmbedder(inner, store)
    first = cached.encode([QUERY, QUERY, TEXTS[3]])
    again = CachedEmbedder(inner, store).encode([TEXTS[3]])
    assert inner.encoded == [QUERY, TEXTS[3]]
    assert again[0].lexical == first[2].lexical
    assert np.array_equal(again[0].tokens, first[2].tokens)
    assert cached.encode([QUERY], task="query")
    assert inner.encoded[2:] == [QUERY], "a query is kept apart from a passage"


def test_a_hybrid_index_ranks_by_what_its_embedder_names() -> None:
    index = HybridIndex(Words("all"))
    index.extend(TEXTS)
    assert isinstance(index.vectors, MultiIndex)
    vector = Words("all").embed([QUERY])[0]
    assert index.search(QUERY, 4, vector=vector) == index.search(QUERY, 4)
    assert type(HybridIndex(Words("dense")).vectors) is VectorIndex
