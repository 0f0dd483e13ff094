from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.text.gutenberg import without_licence
from mgl.types import Document

HEADER = "The Project Gutenberg EBook of Rain, by Ann\n\nTitle: Rain\n\n"
START = "*** START OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n"
END = (
    "*** END OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n\n***** rain.txt *****\n\nSection 1. Terms\n"
)
STORY = "RAIN\n\nCHAPTER I\n\nIt rained.\n\nCHAPTER II\n\nIt stopped."


def body(text: str) -> str:
    return without_licence(Document.from_text("rain.txt", text)).text


@pytest.mark.parametrize(
    "text",
    [
        f"{HEADER}{START}\n\n\n{STORY}\n\n\n{END}",
        f"{HEADER}{START}\n\nProduced by Bo and\nthe others\n\n\n{STORY}\n\n{END}",
        f"{HEADER}{START}\n{STORY}\n\nEnd of the Project Gutenberg EBook of Rain,\nby Ann\n\n{END}",
        f"{HEADER}{START}\n{STORY}\n\nEnd of Project Gutenberg's Rain, by Ann\n{END}",
        f"***START OF THE PROJECT GUTENBERG EBOOK RAIN***\n\nE-text prepared by Bo\n\n{STORY}\n"
        "***END OF THE PROJECT GUTENBERG EBOOK RAIN***\n",
        f"{START}{STORY}",
        f"{STORY}\n{END}",
    ],
)
def test_only_the_book_remains(text: str) -> None:
    assert body(text) == STORY
    assert body(text.replace("\n", "\r\n")) == STORY.replace("\n", "\r\n")


def test_the_book_is_a_document_of_its_own() -> None:
    whole = Document.from_text("rain.txt", f"{HEADER}{START}{STORY}\n{END}", notes=("guessed",))
    book = without_licence(whole)
    assert book.id == Document.from_text("other.txt", STORY).id
    assert [section.label for section in book.sections] == ["CHAPTER I", "CHAPTER II"]
    assert book.notes[0] == "guessed"
    assert f"{len(STORY)} characters" in book.notes[1]


@pytest.mark.parametrize(
    "text",
    [
        STORY,
        "*** START OF THE RAIN ***\nIt rained.",
        f"{START}\n\n{END}",
        "Produced by Bo\n\nRain.",
    ],
)
def test_another_document_is_given_back(text: str) -> None:
    document = Document.from_text("rain.txt", text)
    assert without_licence(document) is document


@given(st.text(alphabet=" \nEend of Project Gutenberg*", max_size=300))
def test_what_remains_is_a_part_of_the_text(story: str) -> None:
    text = f"{START}\n{story}\n{END}"
    assert body(text) in text


def test_a_long_book_that_ends_like_no_other_takes_no_time() -> None:
    lines = "End of Project Gutenberg's Rain\n" * 2_000
    assert body(f"{START}{STORY}\n\n{lines}and more\n\nIt rained.\n{END}").startswith(STORY)
