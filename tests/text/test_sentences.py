from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.text import sentence_spans
from mgl.text.sentences import paragraph_starts

PIECES = st.sampled_from(
    ["Mr.", "He came", ". ", "!", "?", '"', "” ", "…", "...", "\n", "\r\n", "\r", "\n\n", " ", "\t",
     "。", "「", "」", "a", "B.", "3.5", "# x", "- ", "\f", "\u2029", "\x85", "e\u0301", "🙂"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=80), st.lists(PIECES, max_size=40).map("".join))


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "expected",
    [
        ["It rained.", "It stopped!", "Did it?", "Yes."],
        ["Mr. Holmes met Dr. J. H. Watson in St. James's.", "They went out."],
        ["She came at 3.30 p.m. by train.", "It cost $4.50."],
        ["The U.S. Army left.", "He lived in the U.S.", "She did not."],
        ["J. A. Hill and J.R.R. Tolkien wrote.", "So do I.", "You do not."],
        ['"Come!"', '"Wait," he said.', '"No."', "He went."],
        ['"Will you come?" he asked.', '"Stop!" cried the man.'],
        ["“Done.”", "‘Never.’", "(It was late.)", "He slept."],
        ["Well... perhaps not.", "No…", "Yes."],
        ["He waited . . . and waited.", "Then he left."],
        ["See p. 12 and no. 7.", "No.", "Why?"],
        ["Smith, Jones, et al. 1999 say so.", "He said so, e.g. Monday."],
        ["1. First things first.", "2. Then the rest."],
        ["What?!", "No!!", "Yes."],
        ["It ended.[12]", "Then it began."],
        ["_Stop._", "*Go.*", "He went."],
    ],
    ids=lambda expected: expected[0][:20],
)
def test_english(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected
    assert sentences("\n".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [
        ["天地玄黄。", "宇宙洪荒！", "「日月。」", "盈昃？"],
        ["यह एक वाक्य है।", "यह दूसरा है।"],
        ["هل جاء؟", "نعم جاء."],
        ["Он пришёл.", "Она ушла."],
        ["¿Vienes?", "¡No!", "Vale."],
    ],
)
def test_other_scripts(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected
    if expected[0].endswith("。"):
        assert sentences("".join(expected)) == expected


def test_lower_case_chat_has_sentences_too() -> None:
    assert sentences("i came. i saw. it rained") == ["i came.", "i saw.", "it rained"]


@pytest.mark.parametrize("gap", ["\n\n", "\r\n\r\n", "\r\r", "\n \t\n", "\f", "\u2029", "\n\n\n\n"])
def test_a_blank_line_ends_a_sentence(gap: str) -> None:
    assert sentences(f"THE RAIN{gap}it rained") == ["THE RAIN", "it rained"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_line_break_does_not(newline: str) -> None:
    assert sentences(f"It rained{newline}all day.") == [f"It rained{newline}all day."]


def test_headings_and_list_items_stand_alone() -> None:
    text = "# The rain\nIt rained\n- on us\n- on them\n* on all"
    assert sentences(text) == ["# The rain", "It rained", "- on us", "- on them", "* on all"]


def test_a_part_of_a_text() -> None:
    text = "It rained. It stopped. It snowed."
    spans = sentence_spans(text, 3, 22)
    assert [text[start:end] for start, end in spans] == ["rained.", "It stopped."]


@given(text=TEXTS)
def test_spans_are_ordered_disjoint_trimmed_and_leave_nothing_visible_out(text: str) -> None:
    position = 0
    for start, end in sentence_spans(text):
        assert position <= start < end
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip()
        position = end
    assert not text[position:].strip()


@given(text=TEXTS)
def test_paragraphs_start_with_something_visible(text: str) -> None:
    starts = paragraph_starts(text)
    assert starts[0] == 0
    assert starts == sorted(set(starts))
    assert all(not text[start].isspace() for start in starts[1:])
