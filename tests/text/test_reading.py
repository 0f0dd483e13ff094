from __future__ import annotations

import gzip
import io
import os
import sqlite3
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.errors import InputError, UsageError
from mgl.text import read_document
from mgl.text.reading import MAX_BYTES, strip_gutenberg
from mgl.types import Document

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0"


def refused(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_document(path)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


class TestWhatIsNoFile:
    def test_a_missing_path(self, tmp_path: Path) -> None:
        assert "does not exist" in refused(tmp_path / "nowhere.txt").message

    def test_a_folder(self, tmp_path: Path) -> None:
        assert "is a folder" in refused(tmp_path).message

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
    def test_a_named_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert "not a regular file" in refused(tmp_path / "pipe").message

    @pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file"
    )
    def test_a_file_that_may_not_be_read(self, save) -> None:
        path = save("secret.txt", "text")
        path.chmod(0)
        assert "chmod u+r" in refused(path).hint

    def test_a_refusal_of_the_system(self, save, monkeypatch: pytest.MonkeyPatch) -> None:
        path = save("secret.txt", "text")

        def refuse(self: Path, _: str) -> None:
            raise PermissionError(13, "Permission denied", str(self))

        monkeypatch.setattr(Path, "open", refuse)
        assert "may not be read" in refused(path).message

    def test_a_path_that_no_system_takes(self) -> None:
        assert "cannot be read" in refused(Path("a\0b")).message
        assert "cannot be read" in refused(Path("a" * 5000)).message

    def test_a_file_beyond_the_limit_is_not_opened(self, tmp_path: Path) -> None:
        path = tmp_path / "huge.txt"
        with path.open("wb") as file:
            file.truncate(MAX_BYTES + 1)  # sparse
        assert "split" in refused(path).hint


class TestWhatIsNoText:
    def test_empty(self, save) -> None:
        assert "is empty" in refused(save("a.txt", b"")).message

    @pytest.mark.parametrize("content", [" \n\t\r\n", "\ufeff", "\u3000\u00a0\n"])
    def test_white_space_only(self, save, content: str) -> None:
        assert "white space only" in refused(save("a.txt", content)).message

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (PNG, "PNG"),
            (b"\x7fELF\x02\x01\x01\0" + bytes(8), "program"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "JPEG"),
            (gzip.compress(b"text " * 99), "gzip"),
            (b"{\\rtf1\\ansi Hello}", "RTF"),
        ],
        ids=["png", "elf", "jpeg", "gzip", "rtf"],
    )
    def test_known_binaries_are_called_by_name(self, save, content: bytes, what: str) -> None:
        assert what in refused(save("a.txt", content)).message

    def test_this_python(self) -> None:
        assert "program" in refused(Path(sys.executable).resolve()).message

    def test_a_database(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "a.db")
        connection.execute("create table t (x)")
        connection.commit()
        connection.close()
        assert "SQLite" in refused(tmp_path / "a.db").message

    def test_an_office_document(self, save) -> None:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("word/document.xml", "<w:document/>")
        assert "office document" in refused(save("a.docx", out.getvalue())).message

    def test_unknown_binary(self, save) -> None:
        assert "binary" in refused(save("a.bin", bytes(range(256)) * 8)).message
        assert "binary" in refused(save("b.bin", bytes(range(1, 256)) * 8)).message


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

    @pytest.mark.parametrize("name", ["a.pdf", "a.epub"])
    def test_a_name_that_promises_too_much(self, save, name: str) -> None:
        assert "is not a" in refused(save(name, "It rained.")).message

    def test_an_encoding_is_not_taken_for_a_pdf(self, save, make_pdf) -> None:
        with pytest.raises(UsageError):
            read_document(save("a.pdf", make_pdf(["It rained."])), encoding="cp1252")


class TestPlainText:
    def test_nothing_is_changed(self, save) -> None:
        text = "a\r\nb\rc\n\n\u202bשלום\u202c مرحبا 👩‍👩‍👧 e\u0301\ufb01 \x0c end \r\n"
        document = read_document(save("a.txt", text))
        assert document.text == text
        assert document.name == "a.txt"

    def test_one_line_of_five_megabytes(self, save) -> None:
        text = "word " * 1_000_000
        assert read_document(save("a.txt", text)).text == text

    @settings(max_examples=60, deadline=None)
    @given(
        text=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
        encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
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

    @settings(max_examples=60, deadline=None)
    @given(text=st.text(st.characters(codec="latin-1", exclude_characters="\0"), min_size=1))
    def test_a_named_encoding_is_kept_to(
        self, tmp_path_factory: pytest.TempPathFactory, text: str
    ) -> None:
        if text.isspace() or text.encode("latin-1")[:3] == b"\xff\xd8\xff":
            return
        path = tmp_path_factory.mktemp("text") / "a.txt"
        path.write_bytes(text.encode("latin-1"))
        assert read_document(path, encoding="latin-1").text == text

    def test_the_same_text_is_the_same_document(self, save) -> None:
        first = read_document(save("a.txt", "Où ?"))
        second = read_document(save("b.txt", "Où ?".encode("utf-16")))
        assert first.id == second.id


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


@given(st.text(alphabet=" \nEend of Project Gutenberg*", max_size=300))
def test_what_remains_is_a_part_of_the_text(story: str) -> None:
    text = f"{START}\n{story}\n{END}"
    assert body(text) in text


def test_a_long_book_that_ends_like_no_other_takes_no_time() -> None:
    lines = "End of Project Gutenberg's Rain\n" * 2_000
    assert body(f"{START}{STORY}\n\n{lines}and more\n\nIt rained.\n{END}").startswith(STORY)
