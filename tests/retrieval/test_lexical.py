from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from Stemmer import Stemmer

from mgl.prompt import pair_characters, plain_text
from mgl.retrieval.base import Hit
from mgl.retrieval.lexical import LexicalIndex, all_stems, split_words, stems
from mgl.store import Store
from mgl.text.stopwords import FUNCTION_WORDS, STOP_WORDS

TEXTS = {
    10: "Ann met Bo in Rome.",
    -2: "The ring was lost at sea.",
    2**40: "Nobody forgave the losing sailors.",
    4: "",
}
WORDS = ["ring", "rings", "sea", "lost", "ann", "bo", "rome", "the", "painted", "painting"]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
queries = st.lists(st.sampled_from([*WORDS, "zebra"]), max_size=5).map(" ".join)


def ids(hits: list[Hit]) -> list[int]:
    return [hit.id for hit in hits]


def index_of(made: Mapping[int, str], store: Store | None = None) -> LexicalIndex:
    index = LexicalIndex(store, "talk")
    index.extend(made)
    return index


def reference(made: list[str], query: str) -> list[float]:
    """The scores of bm25s over a fixed list of texts."""
    import bm25s

    tokens = all_stems(made)
    if not any(tokens):
        return [0.0] * len(made)
    index = bm25s.BM25()
    index.index(tokens, show_progress=False)
    words = [word for word in stems(query) if word in index.vocab_dict]
    return list(index.get_scores(words)) if words else [0.0] * len(made)


@given(st.lists(st.text() | texts, max_size=4))
def test_texts_are_split_and_stemmed_as_by_bm25s(made: list[str]) -> None:
    import bm25s

    plain = [pair_characters(plain_text(text)) for text in made]  # it knows neither
    assert all_stems(made) == bm25s.tokenize(
        plain, stopwords="en", stemmer=Stemmer("english"), return_ids=False, show_progress=False
    )


@given(st.lists(st.text() | st.sampled_from(["You've had it, I'm sure.", "A O.K. don't"])))
def test_words_are_split_as_by_bm25s(made: list[str]) -> None:
    import bm25s

    plain = [pair_characters(plain_text(text)) for text in made]
    for name, words in (("english", STOP_WORDS), ("english_plus", FUNCTION_WORDS)):
        assert split_words(made, words) == bm25s.tokenize(
            plain, stopwords=name, stemmer=None, return_ids=False, show_progress=False
        )


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("顾师傅最爱吃什么？", ["他的女儿在省城的医院当护士长。", "顾师傅最爱吃的就是桂花糕。"]),
        ("コンサートは何曜日ですか。", ["母は元気です。", "コンサートは木曜日になりました。"]),
        ("佐々木", ["鈴木は医者。", "佐々木は先生。"]),
        ("𠮷野", ["鈴木は医者。", "𠮷野は先生。"]),
    ],
)
def test_chinese_and_japanese_are_found_without_spaces(question: str, texts: list[str]) -> None:
    assert ids(LexicalIndex.of(texts).search(question, 1)) == [1]


def test_stop_words_are_those_of_bm25s() -> None:
    from bm25s.stopwords import STOPWORDS_EN, STOPWORDS_EN_PLUS

    assert frozenset(STOPWORDS_EN) == STOP_WORDS
    assert {
        word for word in STOPWORDS_EN_PLUS if word.isalpha() and len(word) > 1
    } == FUNCTION_WORDS


@given(st.lists(texts, max_size=12), queries)
def test_scores_equal_those_of_bm25s(made: list[str], query: str) -> None:
    assert LexicalIndex.of(made).scores(query).tolist() == reference(made, query)


@given(
    st.lists(texts, min_size=1, max_size=12),
    st.sets(st.integers(0, 11)),
    queries,
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_neighbours_count_as_if_their_words_were_joined(
    made: list[str], starts: set[int], query: str, before: int, after: int
) -> None:
    sessions = [sum(start <= place for start in starts) for place in range(len(made))]
    joined = [
        " ".join(
            made[near]
            for near in range(max(0, place - before), min(len(made), place + after + 1))
            if sessions[near] == sessions[place]
        )
        for place in range(len(made))
    ]
    index = LexicalIndex()
    index.extend(dict(enumerate(made)), starts)
    scores = index.scores(query, before=before, after=after)
    assert scores.tolist() == reference(joined, query)


changes = st.lists(
    st.tuples(st.booleans(), st.dictionaries(st.integers(0, 9), texts, max_size=4)), max_size=8
)


@settings(deadline=None)
@given(changes, queries, st.none() | st.sets(st.integers(0, 11)))
def test_a_stored_index_equals_one_made_from_scratch(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[bool, dict[int, str]]],
    query: str,
    among: set[int] | None,
) -> None:
    left: dict[int, str] = {}
    with Store.open(tmp_path_factory.mktemp("home") / "mgl.sqlite") as store:
        index, other = LexicalIndex(store, "talk"), LexicalIndex(store, "talk")
        for removes, made in steps:
            if removes:
                index.remove(made)
                left = {identity: text for identity, text in left.items() if identity not in made}
            else:
                index.extend(made)
                left |= made
            assert len(other) == len(left)
        fresh = index_of(dict(sorted(left.items())))
        for one in (index, other, LexicalIndex(store, "talk")):
            assert one.ids.tolist() == sorted(left)
            assert one.search(query, 3, among) == fresh.search(query, 3, among)
            for width in (0, 1, 2):
                scores = one.scores(query, before=width, after=width)
                assert scores.tolist() == fresh.scores(query, before=width, after=width).tolist()


def test_slots_of_removed_texts_are_used_again() -> None:
    index = index_of({n: f"ordinary talk number {n}" for n in range(3000)})
    index.remove(range(2900))
    fresh = index_of({n: f"ordinary talk number {n}" for n in range(2900, 3000)})
    assert index.search("number 2950 talk", 5) == fresh.search("number 2950 talk", 5)


def test_a_query_finds_its_text_by_stems() -> None:
    index = index_of(TEXTS)
    assert len(index) == 4
    assert 4 in index
    assert 5 not in index
    assert ids(index.search("Who owns the rings?", 5)) == [-2]
    assert ids(index.search("the forgiving sailor met Ann in Rome", 1)) == [10]
    assert index.scores("ring", [10, 77, -2]).tolist() == [0, 0, index.search("ring", 1)[0].score]


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "?!", "\ud800", '"', "*(x"])
def test_a_query_that_shares_nothing_finds_nothing(query: str) -> None:
    assert index_of(TEXTS).search(query, 5) == []
    assert LexicalIndex().search(query, 5) == []


def test_the_score_does_not_depend_on_what_is_among() -> None:
    index = index_of(TEXTS)
    everywhere = {hit.id: hit.score for hit in index.search("ring sailors Rome", 5)}
    found = index.search("ring sailors Rome", 5, {-2, 2**40, 999})
    assert {hit.id: hit.score for hit in found} == {one: everywhere[one] for one in (-2, 2**40)}
    assert index.search("ring", 5, []) == []


def test_nothing_of_a_removed_text_stays_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mgl.sqlite"
    with Store.open(path) as store:
        index = index_of({n: f"ordinary talk number {n}" for n in range(200)}, store)
        index.extend({500: "the xylophonesecret is here"})
        (written,) = (stems for one, _, stems in store.read_stems("talk") if one == 500)
        index.remove([500])
        kept = store.read_stems("talk")[0][2]
    held = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert kept in held
    for needle in (b"xylophone", *np.frombuffer(written, "S8")[:1].tolist()):
        assert needle not in held


def test_a_typeset_text_is_found_as_a_plain_one_is() -> None:
    texts = ["She was born in Lis-\nbon.", "A fi\u00adnal of\ufb01ce.", "Zoe\u0308 sings."]
    index = LexicalIndex.of(texts)
    for place, word in enumerate(["Lisbon", "final office", "Zoë"]):
        assert [hit.id for hit in index.search(word, 3)] == [place]
