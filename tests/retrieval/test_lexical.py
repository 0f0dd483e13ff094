from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.retrieval.base import Hit
from mgl.retrieval.fuse import fuse_hits, reciprocal_rank_fusion
from mgl.retrieval.hybrid import Hybrid
from mgl.retrieval.lexical import LexicalIndex, StaticTexts, StoredTexts
from mgl.retrieval.vectors import VectorIndex
from mgl.store import Store

TEXTS = {
    10: "Ann met Bo in Rome.",
    -2: "The ring was lost at sea.",
    2**40: "Nobody forgave the losing sailors.",
    4: "",
}
Made = Callable[[Mapping[int, str]], LexicalIndex]


@pytest.fixture(params=["bm25s", "fts5"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Made]:
    """Both indexes have to behave the same."""

    def static(texts: Mapping[int, str]) -> LexicalIndex:
        return StaticTexts(list(texts), list(texts.values()))

    if request.param == "bm25s":
        yield static
        return
    with Store.open(tmp_path / "mgl.sqlite") as store:

        def stored(texts: Mapping[int, str]) -> LexicalIndex:
            index = StoredTexts(store, "texts")
            index.put(texts)
            return index

        yield stored


def ids(hits: list[Hit]) -> list[int]:
    return [hit.id for hit in hits]


def test_a_query_finds_its_text_by_stems(make: Made) -> None:
    index = make(TEXTS)
    assert len(index) == 4
    (hit,) = index.search("Who owns the rings?", 5)
    assert hit.id == -2
    assert hit.score > 0
    assert ids(index.search("the forgiving sailor met Ann in Rome", 5)) == [10, 2**40]
    assert ids(index.search("the forgiving sailor met Ann in Rome", 1)) == [10]


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "?!", "\ud800", '"', "*(x"])
def test_a_query_that_shares_nothing_finds_nothing(make: Made, query: str) -> None:
    assert make(TEXTS).search(query, 5) == []


def test_only_what_is_among_is_found(make: Made) -> None:
    index = make(TEXTS)
    assert set(ids(index.search("ring sailors Rome", 5, {-2, 2**40, 999}))) == {-2, 2**40}
    assert index.search("ring", 5, []) == []


def test_the_score_does_not_depend_on_what_is_among(make: Made) -> None:
    index = make(TEXTS)
    everywhere = {hit.id: hit.score for hit in index.search("ring Rome", 5)}
    (alone,) = index.search("ring Rome", 5, [10])
    assert alone.score == pytest.approx(everywhere[10])


def test_equal_scores_come_by_id(make: Made) -> None:
    index = make(dict.fromkeys((9, 3, 5), "ring bearer"))
    assert ids(index.search("ring", 2)) == [3, 5]


def test_an_index_of_nothing(make: Made) -> None:
    index = make({})
    assert len(index) == 0
    assert index.search("ring", 3) == []
    assert index.search("ring", 3, [1]) == []


def test_less_than_one_hit_cannot_be_asked_for(make: Made) -> None:
    with pytest.raises(UsageError):
        make(TEXTS).search("ring", 0)


@pytest.mark.parametrize("numbers", [[1], [1, 1], [1, 2, 3]])
def test_one_id_a_text(numbers: list[int]) -> None:
    with pytest.raises(UsageError):
        StaticTexts(numbers, ["Ann", "Bo"])


def test_stored_texts_grow_and_shrink(tmp_path: Path) -> None:
    with Store.open(tmp_path / "mgl.sqlite") as store:
        index = StoredTexts(store, "texts")
        index.put(TEXTS)
        index.put({11: "A second ring."})
        assert set(ids(index.search("ring", 5))) == {-2, 11}
        assert index.remove({-2, 12345}) == 1
        assert ids(StoredTexts(store, "texts").search("ring", 5)) == [11]


# Fusion


def test_hits_are_fused_by_hand() -> None:
    fused = fuse_hits([[Hit(1, 9.0), Hit(2, 8.0)], [Hit(3, 0.3), Hit(1, 0.2)]], k=60)
    assert ids(fused) == [1, 3, 2]
    assert [hit.score for hit in fused] == pytest.approx([1 / 61 + 1 / 62, 1 / 61, 1 / 62])


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_fused_hits_are_fused_scores(first: list[int], second: list[int]) -> None:
    rankings = [[Hit(identity, 0.0) for identity in order] for order in (first, second)]
    scores = [[-order.index(identity) for identity in range(6)] for order in (first, second)]
    expected = reciprocal_rank_fusion(scores)
    assert {hit.id: hit.score for hit in fuse_hits(rankings)} == pytest.approx(
        dict(enumerate(expected.tolist()))
    )


def test_a_hybrid_takes_from_both_and_keeps_to_what_is_among() -> None:
    vectors = VectorIndex("toy", 2)
    vectors.add([1, 2, 3], [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    hybrid = Hybrid(vectors, StaticTexts([1, 2, 3], ["sea", "ring", "ring of the sea"]))
    vector = np.asarray([1.0, 0.0], np.float32)
    assert ids(hybrid.search("ring", vector, 3)) == [2, 3, 1]
    assert ids(hybrid.search("ring", vector, 1)) == [2]
    assert ids(hybrid.search("ring", vector, 3, {1, 3})) == [3, 1]
