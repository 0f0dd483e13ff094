from __future__ import annotations

import pytest
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


@pytest.mark.parametrize("sentence", ["王福去了罗马，遇见了安娜。", "アンはローマでボーに会った。"])
def test_a_passage_of_a_script_without_spaces_is_as_long_as_any(sentence: str) -> None:
    document = Document.from_text("t", sentence * 400)
    start = 200 * len(sentence)
    passage = passage_around(document, document.span(start, start + len(sentence)), 1000)
    assert 998 <= passage.end - passage.start <= 1000


def test_one_long_word_does_not_shorten_a_passage_to_its_span() -> None:
    document = Document.from_text("t", f"see {'x' * 300}/here and {'y' * 300} now")
    start = document.text.index("here")
    passage = passage_around(document, document.span(start, start + 4), 200)
    assert passage.end - passage.start == 200
