from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.types import CONVERSATION, Document, Section
from mgl.web.passages import BLOCK, Mark, cut_text, section_label

PIECES = st.lists(
    st.sampled_from(
        ["word ", "\n", "\n\n", "\r\n", " ", "  ", "é👩", "<&>", "x" * 900, "a b " * 400]
    ),
    max_size=24,
).map("".join)


def parts(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [part for block in blocks for part in block["parts"] if "head" not in part]


def pieces(blocks: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Each piece of the text, with the marks that cover it."""
    found = [
        piece
        for part in parts(blocks)
        for piece in (*(part.get("heading") or part["pieces"]), *part["tail"])
    ]
    return [(piece, []) if isinstance(piece, str) else (piece[0], piece[2]) for piece in found]


def plain(blocks: list[dict[str, Any]]) -> str:
    return "".join(text for text, _ in pieces(blocks))


@given(PIECES, st.data(), st.sampled_from(["text/plain", CONVERSATION]))
def test_the_text_and_every_marked_passage_come_out_whole(
    text: str, data: st.DataObject, media_type: str
) -> None:
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
    document = Document.from_text(
        "t", text, sections=sections if cut else (), media_type=media_type
    )
    blocks = cut_text(document, marks)
    assert plain(blocks) == text
    for mark in marks:
        marked = "".join(piece for piece, refs in pieces(blocks) if mark.ref in refs)
        assert marked == text[mark.start : mark.end]
    for block in blocks:
        assert text[block["start"] :].startswith(plain([block]))


def test_a_piece_lists_nodes_before_edges_and_short_before_long() -> None:
    document = Document.from_text("t", "one two three")
    marks = [
        Mark("e0", 4, 7, "edge", behind=True),
        Mark("n0", 0, 13, "k0"),
        Mark("n1", 4, 13, "k1"),
    ]
    (part,) = parts(cut_text(document, marks))
    assert part["pieces"] == [
        ["one ", "k0", ["n0"]],
        ["two", "k1 many", ["n1", "n0", "e0"]],
        [" three", "k1 many", ["n1", "n0"]],
    ]


def test_lines_broken_to_a_width_flow_and_verse_does_not() -> None:
    prose = ("a line of prose that was broken near its seventieth column\r\n" * 3)[:-2]
    verse = "short line\r\nanother line\r\nthe end"
    found = parts(cut_text(Document.from_text("t", f"{prose}\r\n\r\n{verse}"), []))
    assert [part["flow"] for part in found] == [True, False]


def test_each_turn_of_a_conversation_is_a_paragraph() -> None:
    talk = Document.from_text("t", "Ann: Hi.\nBo: Hm.\n", media_type=CONVERSATION)
    assert [part["pieces"] for part in parts(cut_text(talk, []))] == [["Ann: Hi."], ["Bo: Hm."]]


def test_a_long_line_is_cut_into_blocks() -> None:
    text = "x" * (10 * BLOCK)
    blocks = cut_text(Document.from_text("t", text), [Mark("n0", 10, 9 * BLOCK, "k0")])
    assert len(blocks) >= 5
    assert plain(blocks) == text


def test_pages_and_chapters_are_headed_where_they_begin() -> None:
    sections = (Section("page", "7", 0, 4), Section("chapter", "<End>", 4, 8))
    blocks = cut_text(Document.from_text("t", "one two\x00", sections=sections), [])
    heads = [part for block in blocks for part in block["parts"] if "head" in part]
    assert [(head["start"], head["head"]) for head in heads] == [(0, "page 7"), (4, "<End>")]


def test_a_heading_that_stands_in_the_text_is_shown_once_and_keeps_its_marks() -> None:
    text = "CHAPTER  ONE\nThe Storm\n\nAnn met Bo.\n\nTwo\n\nOnly the two of them knew.\n"
    second = text.index("Two\n")
    sections = (
        Section("chapter", "Chapter one", 0, second),
        Section("chapter", "two", second, len(text)),
    )
    blocks = cut_text(Document.from_text("t", text, sections=sections), [Mark("n", 0, 7, "k0")])
    shown = [part for block in blocks for part in block["parts"]]
    assert [part["heading"] for part in shown if "heading" in part] == [
        [["CHAPTER", "k0", ["n"]], "  ONE\nThe Storm"],
        ["Two"],
    ]
    assert not [part for part in shown if "head" in part]
    assert plain(blocks) == text


def test_a_paragraph_that_only_begins_with_the_name_of_its_section_is_no_heading() -> None:
    for text in ("Ann met Bo.", "Ann\n" + "and Bo met again. " * 20):
        document = Document.from_text("t", text, sections=(Section("chapter", "Ann", 0, 5),))
        (block,) = cut_text(document, [])
        assert block["parts"][0].get("head") == "Ann"


@pytest.mark.parametrize(
    ("label", "day", "shown"),
    [
        ("session_12", "Monday, 06 May 2024", "Session 12, Monday, 6 May 2024"),
        ("2024-05-06T10:00:00+02:00", "Monday, 06 May 2024", "Monday, 6 May 2024"),
        ("2024-05-06", "Monday, 06 May 2024", "Monday, 6 May 2024"),
        ("2024-05-06", "", "2024-05-06"),
        ("Our trip", "Monday, 16 May 2024", "Our trip, Monday, 16 May 2024"),
    ],
)
def test_a_session_is_named_as_a_reader_would(label: str, day: str, shown: str) -> None:
    assert section_label(Section("session", label, 0, 5, day)) == shown
