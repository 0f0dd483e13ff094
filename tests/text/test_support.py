"""Names and numbers that a text adds to its source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.text.support import (
    find_echoes,
    find_repeated,
    find_unsaid,
    share_told,
    stem_words,
)

SOURCE = "user: I moved to Lisbon last week! Mara's flat in London costs 1,200 euros. I am seven."


@pytest.mark.parametrize(
    ("text", "unsaid"),
    [
        ("You live in Lisbon.", []),
        ("You live in Paris.", ["Paris"]),
        ("Paris", ["Paris"]),
        ("Mara", []),
        ("You live with Dr. Mara.", []),
        ("You live with Dr. Sun in Lisbon.", ["Sun"]),
        ("Mara’s flat costs 1200 euros.", []),
        ("It costs 1300 euros.", ["1300"]),
        ("You are 7 years old.", []),
        ("You are eight.", ["eight"]),
        ("Painting is what you like.", []),  # what opens a sentence may be any word
        ("You moved on 24 April 2023, in spring 2023.", []),  # a date may be reckoned
        ("You moved in April.", ["April"]),
        ("I'm in Lisbon. I’ve moved.", []),
    ],
)
def test_names_and_numbers_that_the_source_lacks_are_found(text: str, unsaid: list[str]) -> None:
    assert find_unsaid(text, SOURCE) == unsaid


def test_what_chinese_tells_is_compared_by_pairs_of_characters() -> None:
    assert share_told("她在医院工作。", "他的女儿在省城的医院工作。") > 0.5
    assert share_told("她在学校教书。", "他的女儿在省城的医院工作。") < 0.5


def test_a_date_that_may_be_reckoned_is_looked_at_where_that_is_asked() -> None:
    said = "You moved on 24 April 2023."
    assert find_unsaid(said, SOURCE, with_dates=True) == ["24", "April", "2023"]
    assert find_unsaid(said, f"24 April 2023: {SOURCE}", with_dates=True) == []


def test_stems_have_no_possessive_and_numbers_their_value() -> None:
    assert stem_words("Mara’s gardens, seven") == ["mara", "garden", "7"]


TOLD = [
    "I moved to Lisbon last week!",
    "My friend Mara lives in London.",
    "I have moved again, to Porto.",
]


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        ("You live in Porto.", [2]),
        ("Mara lives in London.", [1]),
        ("You moved to Lisbon, then to Porto.", [0, 2]),
        ("You moved.", [2]),  # the latest of equal ones
        ("Bananas.", []),
    ],
)
def test_what_an_answer_repeats_is_found_in_few_statements(answer: str, places: list[int]) -> None:
    assert find_repeated(answer, "Where do I live?", TOLD) == places


def test_lines_that_repeat_most_of_what_a_text_tells_are_found() -> None:
    lines = ["So your sister keeps bees in Trebon!", "Bees are fine.", "I keep a horse.", ""]
    assert find_echoes(["My sister Ines keeps bees in Trebon"], lines) == [0]
    assert find_echoes(["", "of the"], lines) == []
    lines = ["I like dogs.", "I like rain.", "Tea is what Bo grows.", "Bye, Bo!"]
    assert find_echoes(["I like tea."], lines) == [2], "what many lines have weighs little"
    assert find_echoes(["Bye for now"], lines) == []


@given(st.text(), st.text())
def test_a_share_is_of_what_is_told_and_grows_with_the_source(text: str, source: str) -> None:
    assert 0 <= share_told(text, source) <= share_told(text, f"{source} {text}") == 1


def test_the_share_counts_telling_words_by_their_stems() -> None:
    assert share_told("The rings were lost in Rome.", "She loses a ring, as he lost it.") == 2 / 3
