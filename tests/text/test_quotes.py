from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mgl.prompt import plain_text
from mgl.text import Located, locate
from mgl.text.quotes import Folded

STORY = (
    "To Sherlock Holmes she is always THE woman. I have seldom heard\r\n"
    "him mention her under any other name. “It is a ‘secret’—a very old one,” he said; "
    "“don’t tell.”\n\nThe well-known King of Bohemia left his photo\u00adgraph in the "
    "ﬁrst office… Then the lamp went out, and the long night began again.\n"
)


def found(quote: str, **options: float) -> tuple[str, str]:
    located = locate(quote, STORY, **options)
    assert located is not None
    return located.method, STORY[located.start : located.end]


def test_exact_is_the_first_occurrence_in_the_range() -> None:
    assert locate("an", "an an an", 1) == Located(3, 5, "exact", 1.0)
    assert locate("an", "an an an", 4, 8) == Located(6, 8, "exact", 1.0)
    assert locate("an", "an an an", 4, 7) is None


@pytest.mark.parametrize(
    ("quote", "passage"),
    [
        ("seldom heard him mention", "seldom heard\r\nhim mention"),
        ("  to sherlock  holmes\nshe is ", "To Sherlock Holmes she is"),
        ("It is a 'secret' - a very old one,\" he", "It is a ‘secret’—a very old one,” he"),
        ("DON'T TELL.", "don’t tell."),
        ("well‑known King", "well-known King"),
        ("photograph in the", "photo\u00adgraph in the"),
        ("first office... Then the lamp", "ﬁrst office… Then the lamp"),
        ("...the lamp went out…", "the lamp went out"),
    ],
)
def test_typography_does_not_matter(quote: str, passage: str) -> None:
    assert found(quote) == ("normalised", passage)


@pytest.mark.parametrize(
    ("quote", "passage"),
    [
        ("I have seldon herd him mention her", "I have seldom heard\r\nhim mention her"),
        ("always woman. I have seldom heard him", "always THE woman. I have seldom heard\r\nhim"),
        ("the lamp went out, and long night began", "the lamp went out, and the long night began"),
    ],
)
def test_small_errors_are_scored_and_the_floor_is_kept(quote: str, passage: str) -> None:
    located = locate(quote, STORY)
    assert located is not None
    assert located.method == "fuzzy"
    assert 0.9 <= located.score < 1.0
    assert STORY[located.start : located.end] == passage
    assert locate(quote, STORY, 3) == located
    assert locate(quote, STORY, floor=located.score) == located
    assert locate(quote, STORY, floor=located.score + 0.01) is None


@pytest.mark.parametrize(
    "quote",
    [
        "",
        " \n ",
        "… …",
        "Doctor Watson took the train to Paddington",
        "To Sherlock Holmes she is always ... the long night began again",
        "To Sherlock Holmes she is always THE woman … and the long night began again.",
        "she is always THE woman. The well-known King of Bohemia left",
        STORY + "and more than there is in the text",
    ],
)
def test_what_is_not_there_is_not_found(quote: str) -> None:
    assert locate(quote, STORY) is None


def test_a_quote_that_leaves_little_out_is_one_passage() -> None:
    quote = "the lamp went out, and ... night began again"
    method, passage = found(quote, floor=0.85)
    assert (method, passage) == ("fuzzy", "the lamp went out, and the long night began again")


@given(data=st.data(), text=st.text(min_size=1, max_size=80))
def test_every_part_of_a_text_is_found_exactly(data: st.DataObject, text: str) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    quote = text[start:end]
    assume(quote.strip())
    located = locate(quote, text)
    assert located is not None
    assert located.method == "exact"
    assert text[located.start : located.end] == quote
    assert located.start <= start


WORDS = st.sampled_from(
    ["It", "rained", "“oh”", "don’t", "—", "well-known", "…", "É", "ß", "x\u0301", "İzmir"]
)
GAPS = st.sampled_from([" ", "\n", "\r\n", "  ", "\t \n", "\u00a0"])


@given(data=st.data(), words=st.lists(st.tuples(WORDS, GAPS), min_size=4, max_size=20))
def test_a_variant_is_found_where_the_folded_text_is_the_same(
    data: st.DataObject, words: list[tuple[str, str]]
) -> None:
    text = "".join(word + gap for word, gap in words)
    start = data.draw(st.integers(0, len(words) - 2))
    quoted = words[start : data.draw(st.integers(start + 1, len(words)))]
    quote = "".join(word + data.draw(GAPS) for word, _ in quoted)
    quote = quote.translate(str.maketrans("“”’—", '""\'-'))
    quote = data.draw(st.sampled_from([quote, quote.upper().replace("SS", "ß")]))
    wanted = Folded.of(quote).text.strip(" …")
    assume(wanted)
    located = locate(quote, text)
    assert located is not None
    assert located.method in ("exact", "normalised")
    assert Folded.of(text[located.start : located.end]).text.strip(" …") == wanted


@given(quote=st.text(max_size=30), text=st.text(max_size=120), floor=st.floats(0, 1))
def test_whatever_is_found_is_a_range_of_the_text(quote: str, text: str, floor: float) -> None:
    located = locate(quote, text, floor=floor)
    if located is not None:
        assert 0 <= located.start < located.end <= len(text)
        assert floor <= located.score <= 1.0


@pytest.mark.parametrize(
    ("typeset", "plain"),
    [
        ("the fi\u00adnal of\ufb01ce", "the final office"),
        ("soft\u00ad\nhyphen", "softhyphen"),
        ("born in Lis-\nbon", "born in Lisbon"),
        ("Jean-\nLuc, 1-\n2", "Jean-\nLuc, 1-\n2"),
        ("Zoe\u0308", "Zoë"),
        ("\uff2d\uff11", "M1"),
        ("你好，世界！", "你好，世界！"),
        ("می\u200cخواهم", "می\u200cخواهم"),
    ],
)
def test_typesetting_is_undone_for_search_and_models(typeset: str, plain: str) -> None:
    assert plain_text(typeset) == plain


@given(st.text())
def test_no_trace_of_typesetting_is_left(text: str) -> None:
    plain = plain_text(text)
    assert unicodedata.is_normalized("NFC", plain)
    assert not set("\u00ad\u200b\u2060\ufeff\ufb01\uff21").intersection(plain)
