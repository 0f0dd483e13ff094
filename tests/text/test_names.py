from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.text.names import find_mentioned, find_names, find_nouns


def found(text: str) -> list[str]:
    return [name.name for name in find_names(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("I met Irene Adler. Miss Adler sang, and Adler smiled at me.", ["Irene Adler"]),
        ("Then Holmes rose. I saw Holmes leave.", ["Holmes"]),
        (
            "He met the King of Bohemia in Bohemia, and left Bohemia.",
            ["Bohemia", "King of Bohemia"],
        ),
        ("We saw Dr. Watson and Mrs. Hudson.", ["Dr. Watson", "Mrs. Hudson"]),
        ("I said I'll go. So I'll go, as I'll say.", []),
        ("He sold roses. The red Roses were roses, and roses they stayed.", []),
        ("of Saxe-Meningen and of Saxe-Meningen", ["Saxe-Meningen"]),
        ("They met Élodie and again Élodie there.", ["Élodie"]),
        ("with Ann's ring and for Ann's sake and to Ann", ["Ann"]),
        ("In Detroit I saw the cars, and in Detroit I stayed.", ["Detroit"]),
        ("We told Ada I'd come. She asked Ada I’m not sure what.", ["Ada"]),
        ("They served King James I. Then King James I, a Scot, died.", ["King James I"]),
        ("", []),
    ],
)
def test_names_by_hand(text: str, names: list[str]) -> None:
    assert sorted(found(text)) == sorted(names)


@given(st.text(alphabet="Abc D.e\n'-", max_size=200))
def test_spans_hold_an_alias(text: str) -> None:
    for name in find_names(text):
        assert name.name in name.aliases
        for start, end in name.spans:
            assert " ".join(text[start:end].split()) in name.aliases


def test_a_mention_is_a_whole_word_of_any_alias() -> None:
    names = find_names("I met Irene Adler. Miss Adler sang to Holmes, and Holmes listened.")
    assert [name.name for name in find_mentioned("when Miss\nAdler came", names)] == ["Irene Adler"]
    assert find_mentioned("Holmesian", names) == []


FRONT = """THE GODS OF MARS

CONTENTS
CHAPTER I. The Black Planet ........ 3
Chapter II. The Black Planet again

The Plant Men came. We fought the Plant Men and then the Plant Men fled.
An English lawyer and an English maid spoke English to the French."""


def test_front_matter_and_adjectives_of_nations_are_no_names() -> None:
    assert found(FRONT) == ["Plant Men"]


def test_function_words_and_adjectives_are_no_nouns() -> None:
    said = (
        "On the left was the man. The other, of his own, stood left of the door, in the english. "
    )
    assert [noun.name for noun in find_nouns(said * 4)] == ["man", "door"]


TEXT = """The ferryman lived by the river. A river listens, said the ferryman, and his boat crossed
rivers. They walked quickly; she walked quickly; he walked quickly to the boat. The old ferryman
slept. The old boat slept. An old man slept. The boats of the ferrymen were wet."""


def test_forms_of_one_stem_are_one_noun() -> None:
    found = {noun.name: noun for noun in find_nouns(TEXT)}
    assert set(found["river"].aliases) == {"river", "rivers"}
    assert "quickly" not in found
    assert "walked" not in found
    assert "old" not in found, "an adjective is told by what follows it"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for noun in find_nouns(text, min_count=1):
        assert {text[start:end] for start, end in noun.spans} == set(noun.aliases)
