from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import InputError
from mgl.text import read_document
from mgl.text.reading import MAX_BYTES, strip_gutenberg
from mgl.types import Document


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_document(path)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_what_is_no_file(tmp_path: Path) -> None:
    with (tmp_path / "huge.txt").open("wb") as file:
        file.truncate(MAX_BYTES + 1)  # sparse
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")  # is not waited for
    for path in (tmp_path, *map(tmp_path.joinpath, ("nowhere", "a\0b", "a" * 5000))):
        refused(path)
    for path in tmp_path.iterdir():
        refused(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", b""),
        ("a.txt", b" \n\t\r\n"),
        ("a.txt", "\ufeff".encode()),
        ("a.txt", "\u3000\u00a0\n".encode()),
        ("a.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
        ("a.txt", b"\xff\xd8\xff\xe0\0\x10JFIF"),
        ("a.txt", gzip.compress(b"text " * 99, mtime=0)),
        ("a.txt", b"{\\rtf1\\ansi Hello}"),
        ("a.db", b"SQLite format 3\0" + bytes(99)),
        ("a.docx", b"PK\x03\x04" + b"word/document.xml"),
        ("a.bin", bytes(range(256)) * 8),
        ("a.bin", bytes(range(1, 256)) * 8),
        ("a.pdf", b"It rained."),
        ("a.epub", b"It rained."),
    ],
)
def test_what_is_no_text(save, name: str, content: bytes) -> None:
    refused(save(name, content))


class TestKind:
    @pytest.mark.parametrize("name", ["a.log", "README", "a.txt.bak"])
    def test_an_unknown_extension_is_read_as_text_and_said(self, save, name: str) -> None:
        document = read_document(save(name, "It rained."))
        assert document.text == "It rained."
        assert "read as text" in document.notes[0]

    @pytest.mark.parametrize("name", ["a.txt", "A.TXT", "a.md", "a.html"])
    def test_a_known_extension_needs_no_note(self, save, name: str) -> None:
        assert read_document(save(name, "It rained.")).notes == ()

    def test_html_without_its_extension(self, save) -> None:
        document = read_document(save("page", "\n<!DOCTYPE html><p>It <i>rained</i>."))
        assert (document.text, document.media_type) == ("It rained.", "text/html")

    def test_content_beats_the_name(self, save, make_pdf) -> None:
        document = read_document(save("a.txt", make_pdf(["It rained."])))
        assert document.media_type == "application/pdf"
        assert "read as PDF" in document.notes[0]


class TestPlainText:
    @given(
        text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
        encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    )
    def test_the_text_is_what_was_encoded(
        self, tmp_path_factory: pytest.TempPathFactory, text: str, encoding: str
    ) -> None:
        if (
            text.isspace()
            or text.startswith("\ufeff")
            or text.encode()[:5] in (b"%PDF-", b"{\\rtf")
        ):
            return
        path = tmp_path_factory.mktemp("text") / "a.txt"
        path.write_bytes(text.encode(encoding))
        document = read_document(path)
        assert document.text == text
        assert document.notes == ()


HEADER = "The Project Gutenberg EBook of Rain, by Ann\n\nTitle: Rain\n\n"
START = "*** START OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n"
END = (
    "*** END OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n\n***** rain.txt *****\n\nSection 1. Terms\n"
)
STORY = "RAIN\n\nCHAPTER I\n\nIt rained.\n\nCHAPTER II\n\nIt stopped."


def body(text: str) -> str:
    return strip_gutenberg(Document.from_text("rain.txt", text)).text


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
    book = strip_gutenberg(whole)
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
    assert strip_gutenberg(document) is document
