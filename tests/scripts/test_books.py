from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from books import chapters, excerpt, find_book
from hypothesis import given
from hypothesis import strategies as st

from mgl.errors import UsageError
from mgl.text.chapters import sections, text_headings
from mgl.types import Document


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / "narrativeqa"
    (own / "books").mkdir(parents=True)
    titles = ("The Gods of Mars", "The Warlord of Mars")
    books = [
        {"file": f"{n}.txt", "nqa_document_id": str(n), "nqa_title": title}
        for n, title in enumerate(titles)
    ]
    (own / "books.json").write_text(json.dumps(books))
    (own / "books" / "0.txt").write_text("It rained.")
    question = {"document_id": "0", "question": "Who ?", "answers": ["Ann"]}
    (own / "qaps.jsonl").write_text(json.dumps(question))
    other = tmp_path / "nocha"
    other.mkdir()
    claims = [
        {"book_title": "the_great_rain_ann_bo", "claim": "It rained.", "type": label, "index": 1}
        for label in (True, False)
    ]
    (other / "data_sample.json").write_text(json.dumps(claims))
    (other / "classic_books.pkl").write_bytes(pickle.dumps({"the_great_rain_ann_bo": "It shone."}))
    return tmp_path


def test_a_book_of_either_benchmark_is_found_by_words_of_its_title(folder: Path) -> None:
    gods, rain = find_book(folder, "mars GODS"), find_book(folder, "great rain")
    assert (gods.benchmark, gods.title, len(gods.questions)) == (
        "narrativeqa",
        "The Gods of Mars",
        1,
    )
    assert gods.read().text == "It rained."
    assert (rain.benchmark, rain.title, len(rain.questions)) == (
        "nocha",
        "the great rain ann bo",
        2,
    )
    assert rain.read().text == "It shone."


@pytest.mark.parametrize(("words", "named"), [("mars", "Warlord"), ("moby", "rain"), ("", "Gods")])
def test_no_book_and_several_are_told_with_what_there_is(
    folder: Path, words: str, named: str
) -> None:
    with pytest.raises(UsageError) as caught:
        find_book(folder, words)
    assert named in caught.value.hint


def test_a_folder_without_benchmarks(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        find_book(tmp_path, "mars")


TEXT = "".join(f"CHAPTER {number}\n\nIt rained {number} times.\n\n" for number in range(1, 5))
BOOK = Document.from_text("rain.txt", TEXT, sections=sections(text_headings(TEXT), len(TEXT)))


def test_chapters_by_their_numbers() -> None:
    part = chapters(BOOK, 2, 3)
    assert [section.label for section in part.sections] == ["CHAPTER 2", "CHAPTER 3"]
    assert part.text.startswith("CHAPTER 2")
    assert part.text.rstrip().endswith("It rained 3 times.")
    assert part.name == "rain chapters 2-3.txt"
    assert part.id != BOOK.id


def test_all_chapters_are_the_text_from_the_first_on() -> None:
    assert chapters(BOOK, 1, 4).id == BOOK.id


@pytest.mark.parametrize(("first", "last"), [(0, 1), (3, 2), (1, 5), (5, 5), (-1, 2)])
def test_chapters_that_there_are_not(first: int, last: int) -> None:
    with pytest.raises(UsageError, match="has 4 chapters"):
        chapters(BOOK, first, last)
    with pytest.raises(UsageError, match="has 0 chapters"):
        chapters(Document.from_text("a.txt", "It rained."), 1, 1)


@pytest.mark.parametrize(("start", "end"), [(5, 5), (5, 2), (-3, 5), (10**6, 10**7), (9, 11)])
def test_characters_without_text(start: int, end: int) -> None:
    with pytest.raises(UsageError, match="no text from"):
        excerpt(BOOK, start, end)


def test_a_name_without_a_suffix() -> None:
    assert excerpt(Document.from_text("rain", TEXT), 0, 9).name == "rain characters 0-9"


@given(st.integers(0, len(TEXT)), st.integers(0, 2 * len(TEXT)))
def test_positions_count_from_where_the_part_begins(start: int, end: int) -> None:
    try:
        part = excerpt(BOOK, start, end)
    except UsageError:
        assert not TEXT[start:end].strip()
        return
    assert part.text == TEXT[start:end]
    for position in range(len(part.text)):
        here, there = part.section_at(position), BOOK.section_at(start + position)
        assert (here and here.label) == (there and there.label)
