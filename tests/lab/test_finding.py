"""Passages that hold some words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mgl.lab.finding import find_passages
from mgl.types import Conversation, Document, Turn

WORDS = ("Star", "zoe\u0308", "it is", "’tis", "e\u00adnd", "Ω", "no—yes", "·")
TEXTS = st.lists(st.sampled_from([*WORDS, " ", "\n\n", ". "]), min_size=1, max_size=30).map("".join)


def test_turns_are_found_from_the_last_whatever_their_forms() -> None:
    said = ("Zoe\u0308 has a horse", "A HORSE, Zoë?", "It rains", "·····")
    talk = Conversation.from_turns("t", [Turn(f"{n}", "Ann", text) for n, text in enumerate(said)])
    found = [(each.citation.node_id, each.is_phrase) for each in find_passages(talk, "zoë horse")]
    assert found == [("1", False), ("0", False)]
    (one,) = find_passages(talk, "HORSE,  zoë")
    assert (one.citation.quote, one.citation.speaker, one.is_phrase) == (said[1], "Ann", True)
    assert not [*find_passages(talk, "zoë rains")]
    assert not [*find_passages(talk, "\u00ad")]


def test_of_a_long_paragraph_the_part_around_the_words_is_cited() -> None:
    text = f"First.\n\n{'before ' * 90}the silver key {'after ' * 90}\n\nLast."
    document = Document.from_text("b.txt", text)
    (found,) = find_passages(document, "silver key")
    assert len(found.citation.quote) < 450
    assert found.citation.quote.startswith("before ")
    assert found.citation.quote.endswith(" after")
    assert " the silver key " in found.citation.quote


@given(TEXTS, st.sampled_from(WORDS))
def test_each_passage_is_of_the_text_and_holds_the_words(text: str, words: str) -> None:
    document = Document.from_text("t", text)
    talk = Conversation.from_turns("t", [Turn("1", "", text)])
    found = [each.citation for each in find_passages(document, words)]
    for each in found:
        assert document.quote(each.span) == each.quote
    assert bool([*find_passages(talk, words)]) >= bool(found)
    if words in text:
        assert [*find_passages(talk, words)]
