"""Nouns found by code."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mgl.text.nouns import find_nouns

TEXT = """The ferryman lived by the river. A river listens, said the ferryman, and his boat crossed
rivers. They walked quickly; she walked quickly; he walked quickly to the boat. The old ferryman
slept. The old boat slept. An old man slept. The boats of the ferrymen were wet."""


def test_forms_of_one_stem_are_one_noun() -> None:
    found = {noun.name: noun for noun in find_nouns(TEXT)}
    assert set(found["river"].aliases) == {"river", "rivers"}
    assert "quickly" not in found
    assert "walked" not in found


def test_an_adjective_is_told_by_what_follows_it() -> None:
    assert "old" not in {noun.name for noun in find_nouns(TEXT)}


def test_every_place_holds_a_form() -> None:
    for noun in find_nouns(TEXT, min_count=2):
        assert {TEXT[start:end] for start, end in noun.spans} == set(noun.aliases)


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for noun in find_nouns(text, min_count=1):
        assert all(text[start:end].islower() for start, end in noun.spans)
