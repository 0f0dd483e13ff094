from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import StoreError
from mgl.store import Store, texts

TEXTS = {1: "Ann met Bo in Rome.", 2: "The ring was lost at sea.", -7: "Losing sailors drink."}


def found(store: Store, *words: str, among: list[int] | None = None) -> list[int]:
    return [identity for identity, _ in store.find_texts("talk", words, 10, among)]


def test_words_are_stemmed_and_rarer_ones_count_more(store: Store) -> None:
    store.put_texts("talk", {**TEXTS, 4: "Ann, Ann and Ann at sea"})
    assert set(found(store, "losing")) == {-7}
    assert set(found(store, "sailor", "rings")) == {2, -7}
    scores = dict(store.find_texts("talk", ["sea", "rome"], 10))
    assert scores[1] > scores[2] > 0


def test_accents_and_case_do_not_matter(store: Store) -> None:
    store.put_texts("talk", {1: "Zoë ate a CRÈME brûlée"})
    assert found(store, "zoe") == found(store, "creme") == found(store, "BRÛLÉE") == [1]


def test_a_text_is_replaced_and_its_words_go(store: Store) -> None:
    store.put_texts("talk", TEXTS)
    store.put_texts("talk", {1: "Cy sleeps."})
    assert found(store, "rome") == []
    assert found(store, "sleep") == [1]
    assert store.count_texts("talk") == 3


def test_removing_says_how_many_there_were(store: Store) -> None:
    store.put_texts("talk", TEXTS)
    assert store.remove_texts("talk", [1, 99]) == 1
    assert store.remove_texts("talk", [1]) == 0
    assert store.remove_texts("no such index", [1]) == 0
    assert store.count_texts("talk") == 2
    assert found(store, "rome") == []


def test_only_what_is_among_is_found(store: Store) -> None:
    store.put_texts("talk", TEXTS)
    assert set(found(store, "ring", "ann", "sailors", among=[2, -7, 500])) == {2, -7}
    assert found(store, "ring", among=[]) == []


def test_equal_scores_come_by_id(store: Store) -> None:
    store.put_texts("talk", dict.fromkeys((9, 3, 5), "the same words"))
    assert found(store, "same") == [3, 5, 9]


def test_indexes_know_nothing_of_each_other(store: Store) -> None:
    store.put_texts("talk", TEXTS)
    store.put_texts("other", {1: "sea"})
    before = store.find_texts("talk", ["sea"], 10)
    store.put_texts("other", dict.fromkeys(range(2, 50), "sea"))
    assert store.find_texts("talk", ["sea"], 10) == before
    store.drop_texts("talk")
    store.drop_texts("talk")
    assert store.count_texts("talk") == 0
    assert store.count_texts("other") == 49
    store.put_texts("talk", {1: "sea"})
    assert found(store, "sea") == [1]


@pytest.mark.parametrize(
    "text", ["", "nul\0byte ring", "lone \ud800 ring", '"ring" OR NEAR(', "ring " * 20_000]
)
def test_any_text_can_be_kept(store: Store, text: str) -> None:
    store.put_texts("talk", {1: text})
    assert found(store, "ring") == ([1] if "ring" in text else [])


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.text(max_size=8), max_size=4))
def test_no_word_is_read_as_syntax(words: list[str]) -> None:
    with Store.open(Path(":memory:")) as store:
        store.put_texts("talk", {1: "ring"})
        assert found(store, *words) in ([], [1])


def test_texts_are_kept_with_the_rest_or_not_at_all(store: Store, path: Path) -> None:
    def interrupted() -> None:
        with store._write() as connection:
            texts.put_texts(connection, "talk", TEXTS)
            connection.execute("INSERT INTO reports VALUES ('key', 'missing memory', 'text')")
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, StoreError)):
        interrupted()
    assert store.count_texts("talk") == 0
    store.put_texts("talk", TEXTS)
    store.close()
    with Store.open(path) as again:
        assert found(again, "rome") == [1]


def test_removed_words_are_gone_from_the_file(store: Store, path: Path) -> None:
    store.put_texts("talk", {n: f"ordinary talk number {n}" for n in range(200)})
    store.put_texts("talk", {500: "the xylophonesecret is here"})
    store.remove_texts("talk", [500])
    store.close()
    held = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"ordinary" in held or b"ordinari" in held
    assert b"xylophonesecret" not in held
