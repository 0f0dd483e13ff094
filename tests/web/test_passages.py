from __future__ import annotations

import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from mgl.types import Document, Section
from mgl.web.escape import visible
from mgl.web.passages import BLOCK, Mark, text_html

PIECES = st.lists(
    st.sampled_from(
        ["word ", "\n", "\n\n", "\r\n", " ", "  ", "é👩", "<&>", "x" * 900, "a b " * 400]
    ),
    max_size=24,
).map("".join)
HEADING = re.compile(r"<h3.*?</h3>", re.S)
MARK = re.compile(r'<mark class="[^"]*" data-refs="([^"]*)">(.*?)</mark>', re.S)


def plain(markup: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", HEADING.sub("", markup)))


def marked(markup: str, ref: str) -> str:
    pieces = MARK.findall(HEADING.sub("", markup))
    return "".join(plain(body) for refs, body in pieces if ref in refs.split())


@given(PIECES, st.data())
def test_the_text_and_every_marked_passage_come_out_whole(text: str, data: st.DataObject) -> None:
    if not text:
        return
    start = st.integers(0, len(text) - 1)
    spans = data.draw(st.lists(st.tuples(start, st.integers(1, 2500)), max_size=8))
    marks = [
        Mark(f"n{index}", first, min(len(text), first + length), "k0", behind=index % 2 == 1)
        for index, (first, length) in enumerate(spans)
    ]
    cut = data.draw(start)
    sections = (Section("page", "1", 0, cut), Section("page", "2", cut, len(text)))
    markup = text_html(Document.from_text("t", text, sections=sections if cut else ()), marks)
    assert plain(markup) == text
    for mark in marks:
        assert marked(markup, mark.ref) == text[mark.start : mark.end]


def test_a_piece_lists_nodes_before_edges_and_short_before_long() -> None:
    document = Document.from_text("t", "one two three")
    marks = [
        Mark("e0", 4, 7, "edge", behind=True),
        Mark("n0", 0, 13, "k0"),
        Mark("n1", 4, 13, "k1"),
    ]
    found = MARK.findall(text_html(document, marks))
    assert found == [("n0", "one "), ("n1 n0 e0", "two"), ("n1 n0", " three")]


def test_lines_broken_to_a_width_flow_and_verse_does_not() -> None:
    prose = ("a line of prose that was broken near its seventieth column\n" * 3)[:-1]
    verse = "short line\nanother line\nthe end"
    markup = text_html(Document.from_text("t", f"{prose}\n\n{verse}"), [])
    assert re.findall(r'<p dir="auto"( class="flow")?>', markup) == [' class="flow"', ""]


def test_a_long_line_is_cut_into_blocks() -> None:
    text = "x" * (10 * BLOCK)
    markup = text_html(Document.from_text("t", text), [Mark("n0", 10, 9 * BLOCK, "k0")])
    assert markup.count('<div class="block') >= 5
    assert plain(markup) == text


def test_pages_and_chapters_are_headed_where_they_begin() -> None:
    sections = (Section("page", "7", 0, 4), Section("chapter", "<End>", 4, 8))
    markup = text_html(Document.from_text("t", "one two\x00", sections=sections), [])
    assert re.findall(r'data-start="(\d)">([^<]*)</h3>', markup) == [
        ("0", "page 7"),
        ("4", "&lt;End&gt;"),
    ]
    assert plain(markup) == visible("one two\x00")
