from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.mindgraph.tools import passage_around
from mgl.types import Document

words = st.text(alphabet="ab \n\t", min_size=1, max_size=400)


@given(words, st.data())
def test_a_passage_holds_its_span_and_lies_in_the_text(text: str, data: st.DataObject) -> None:
    document = Document.from_text("t", text)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    size = data.draw(st.integers(1, 200))
    span = document.span(start, end)
    passage = passage_around(document, span, size)
    assert passage.start <= start < end <= passage.end <= len(text)
    assert passage.end - passage.start <= max(size, end - start)


def test_a_passage_is_centred_and_ends_between_words() -> None:
    text = "one two three four five six seven eight nine ten"
    document = Document.from_text("t", text)
    start = text.index("five")
    passage = document.quote(passage_around(document, document.span(start, start + 4), 20))
    assert passage.split() == ["four", "five", "six"]
