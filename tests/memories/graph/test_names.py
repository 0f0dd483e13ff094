from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.graph.names import clean_name, entity_key, mentions


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Gods of Mars", "gods of mars"),
        ("“Issus”", "ISSUS"),
        ("John\nCarter", "john  carter"),
        ("Ｃａｒｔｅｒ", "Carter"),
        ("O’Brien", "o'brien"),
        ("the (Holy) Therns.", "Holy Therns"),
        ("A Thern", "thern"),
        ("Carter|Dejah", "Carter Dejah"),
        ("Stra\u00dfe", "STRASSE"),
        ("Zero\u200bWidth", "zerowidth"),
    ],
)
def test_spellings_of_one_name_have_one_key(one: str, other: str) -> None:
    assert entity_key(one) == entity_key(other) != ""


@pytest.mark.parametrize(
    ("one", "other"), [("Ann", "Anne"), ("Vitamin A", "Vitamin"), ("火星", "火")]
)
def test_different_names_have_different_keys(one: str, other: str) -> None:
    assert entity_key(one) != entity_key(other)


@pytest.mark.parametrize("name", ["", "  ", '"\'"', "...", "<|>", "##", "\x00", "__"])
def test_a_name_without_a_word_has_no_key(name: str) -> None:
    assert entity_key(name) == ""
    assert clean_name(name) == ""


@given(st.text(max_size=40))
def test_the_key_of_a_key_is_itself_and_holds_no_separator(name: str) -> None:
    key = entity_key(name)
    assert entity_key(key) == key
    assert "|" not in key
    assert "\n" not in key


@given(st.text(max_size=40))
def test_cleaning_keeps_the_key_and_is_done_once(name: str) -> None:
    clean = clean_name(name)
    assert clean_name(clean) == clean
    assert "\n" not in clean
    assert "|" not in clean


def test_names_are_found_as_words() -> None:
    assert mentions("The Ann", "So ANN\nmet him.")
    assert not mentions("Ann", "Anne met him.")
    assert mentions("火星", "彼は火星に行った")
    assert not mentions("...", "...")
