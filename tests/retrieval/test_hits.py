"""Hits of a question in a whole text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mgl.retrieval.hits import find_hits
from mgl.types import Document

TEXT = (
    "Ann had a goat. It rained. It rained again. Nobody came. "
    "Bo had a goat too. The road was long. The road was dark. Then it was day. "
    "In spring the goat of Cy ran off."
)
WORDS = st.sampled_from(["goat", "rain", "road", "Ann", "the", "many", "spring"])


def test_hits_come_with_their_neighbours_in_the_order_of_the_text() -> None:
    document = Document.from_text("t", TEXT)
    hits = find_hits(document, "How many people had a goat?", 1000)
    shown = [document.quote(span).strip() for span in hits]
    assert [("Ann" in one, "Bo" in one, "Cy" in one) for one in shown] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


def test_what_shares_no_word_has_no_hit() -> None:
    hits = find_hits(Document.from_text("t", TEXT), "How many zebras?", 1000)
    assert hits == []


@given(
    st.lists(st.lists(WORDS, min_size=1, max_size=6), max_size=12),
    st.lists(WORDS, min_size=1, max_size=4),
    st.integers(0, 200),
)
def test_spans_are_apart_in_order_and_within_the_room(
    sentences: list[list[str]], asked: list[str], room: int
) -> None:
    document = Document.from_text("t", " ".join(f"{' '.join(each)}." for each in sentences))
    hits = find_hits(document, " ".join(asked), room)
    ends = [0, *(span.end for span in hits)]
    assert all(end <= span.start for end, span in zip(ends, hits, strict=False))
    joints = len(sentences)  # a space between the sentences of a run
    assert sum(span.end - span.start for span in hits) <= room + joints
