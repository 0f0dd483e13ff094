from __future__ import annotations

import json
from pathlib import Path

import pytest

from mgl.benchmarks.narrativeqa import NarrativeBook, read_narrativeqa
from mgl.errors import InputError

BOOK = {"file": "rain.txt", "nqa_document_id": "d1", "nqa_title": "Rain"}
TEXT = (
    "Title: Rain\n*** START OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n\nIt rained.\n\n"
    "*** END OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n"
)


def asked(**fields: object) -> str:
    line = {"document_id": "d1", "question": "Who ?", "answers": ["Ann", "Ann ."], **fields}
    return json.dumps(line)


def written(folder: Path, *lines: str, books: object = (BOOK,)) -> Path:
    (folder / "books").mkdir()
    (folder / "books" / "rain.txt").write_text(TEXT)
    (folder / "books.json").write_text(json.dumps(books))
    (folder / "qaps.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def read(folder: Path, *lines: str) -> NarrativeBook:
    [book] = read_narrativeqa(written(folder, *lines))
    return book


def test_a_book_with_its_questions(tmp_path: Path) -> None:
    book = read(tmp_path, asked(), "", asked(question="Why ?"))
    assert (book.id, book.title) == ("d1", "Rain")
    assert [question.id for question in book.questions] == ["Rain/q0", "Rain/q1"]
    assert book.questions[0].answers == ("Ann", "Ann.")
    assert book.read().text == "It rained."


def test_a_book_may_have_no_questions(tmp_path: Path) -> None:
    other = {"file": "sun.txt", "nqa_document_id": "d2", "nqa_title": "Sun"}
    books = read_narrativeqa(written(tmp_path, asked(), books=[other, BOOK]))
    assert [(book.title, len(book.questions)) for book in books] == [("Sun", 0), ("Rain", 1)]
    with pytest.raises(InputError, match=r"sun\.txt does not exist"):
        books[0].read()


@pytest.mark.parametrize(
    ("tokenised", "text"),
    [
        ("Who is it ?", "Who is it?"),
        ("What ca n't Monty tell ?", "What can't Monty tell?"),
        ("Tom-All-Alone s", "Tom-All-Alone s"),
        ("$ 1 million , at least", "$1 million, at least"),
        ("Ann ( the elder ) left .", "Ann (the elder) left."),
        ("Ann 's friend", "Ann's friend"),
        ("at 3 .5 or .5", "at 3 .5 or .5"),
        ("  Why  so\tlate ?", "Why so late?"),
    ],
)
def test_spaces_of_the_tokenised_columns(tmp_path: Path, tokenised: str, text: str) -> None:
    assert read(tmp_path, asked(question=tokenised)).questions[0].text == text


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 3: Expecting"),
        ("[]", "line 3: value"),
        ("[" * 100_000, "line 3: "),
        (asked(question=""), "line 3: question"),
        (asked(answers=[]), "line 3: answers"),
        (asked(answers="Ann"), "line 3: answers"),
        (asked(document_id="d9"), r"line 3: document d9 is not in books\.json"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as caught:
        read(tmp_path, asked(), asked(), line)
    assert caught.value.hint


@pytest.mark.parametrize("books", [{}, [1], [{"file": "rain.txt"}], [{**BOOK, "file": ""}]])
def test_a_bad_list_of_books_is_refused(tmp_path: Path, books: object) -> None:
    with pytest.raises(InputError, match=r"books\.json is no list of books"):
        read_narrativeqa(written(tmp_path, asked(), books=books))


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"books\.json does not exist"):
        read_narrativeqa(tmp_path)


@pytest.mark.data
def test_the_real_books(development_data: Path) -> None:
    books = read_narrativeqa(development_data / "narrativeqa")
    counts = {book.title: len(book.questions) for book in books}
    assert counts == {
        "Bleak House": 30,
        "Brewster's Millions": 29,
        "Siddhartha (novel)": 29,
        "The Adventures of Sherlock Holmes": 28,
        "The Gods of Mars": 0,
        "The Picture of Dorian Gray": 29,
    }
    assert {len(question.answers) for book in books for question in book.questions} == {2}
    for book in books:
        document = book.read()
        assert "gutenberg-tm" not in document.text.lower()
        assert "gutenberg ebook" not in document.text.lower()
        assert "Produced by" not in document.text[:2000]
        assert len(document.sections) >= 13
        for question in book.questions:
            assert not any(f" {mark}" in question.text for mark in ".,?!;:"), question
