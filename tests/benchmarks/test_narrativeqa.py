from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from mgl.benchmarks.base import Dataset
from mgl.benchmarks.narrativeqa import NARRATIVEQA
from mgl.errors import InputError
from tests.benchmarks.seen import document_of, seen

BOOK = {"file": "rain.txt", "nqa_document_id": "d1", "nqa_title": "Rain"}
TEXT = (
    "Title: Rain\n*** START OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n\nIt rained.\n\n"
    "*** END OF THIS PROJECT GUTENBERG EBOOK RAIN ***\n"
)


def asked(**fields: object) -> str:
    line = {"document_id": "d1", "question": "Who ?", "answers": ["Ann", "Ann ."], **fields}
    return json.dumps(line)


def written(folder: Path, *lines: str, books: object = (BOOK,)) -> Path:
    (folder / "books").mkdir(exist_ok=True)
    (folder / "books" / "rain.txt").write_text(TEXT)
    (folder / "books.json").write_text(json.dumps(books))
    (folder / "qaps.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def read(folder: Path, *lines: str) -> Dataset:
    return NARRATIVEQA.read(written(folder, *lines))


def test_a_book_with_its_questions(tmp_path: Path) -> None:
    dataset = read(tmp_path, asked(), "", asked(question="Why ?"))
    assert [item.id for item in dataset.items] == ["Rain/q0", "Rain/q1"]
    assert {item.source for item in dataset.items} == {"Rain"}
    assert dataset.items[0].golds == ("Ann", "Ann.")
    assert document_of(dataset, "Rain").text == "It rained."
    assert set(dataset.sha256) == {"books.json", "qaps.jsonl", "rain.txt"}


def test_hgmems_selection_is_ten_long_books_with_ten_questions_each(tmp_path: Path) -> None:
    books = [
        {"file": f"{n}.txt", "nqa_document_id": f"d{n}", "nqa_title": f"Book {n}"}
        for n in range(13)
    ]
    lines = [asked(document_id=f"d{n}") for n in range(13) for _ in range(12)]
    folder = written(tmp_path, *lines, books=books)
    for n in range(13):
        (folder / "books" / f"{n}.txt").write_text("It rained. " * (10 if n == 3 else 37_000))
    chosen = [item for item in NARRATIVEQA.read(folder).items if "selection" in item.labels]
    counted = Counter(item.source for item in chosen)
    assert len(counted) == 10
    assert set(counted.values()) == {10}
    assert "Book 3" not in counted
    assert NARRATIVEQA.read(folder).items == NARRATIVEQA.read(folder).items


SUN = {"file": "sun.txt", "nqa_document_id": "d2", "nqa_title": "Sun"}


def test_books_may_have_no_questions_or_one_title_but_not_one_id(tmp_path: Path) -> None:
    dataset = NARRATIVEQA.read(written(tmp_path, asked(), books=[SUN, BOOK]))
    assert list(dataset.sources) == ["Sun", "Rain"]
    assert [item.source for item in dataset.items] == ["Rain"]
    with pytest.raises(InputError, match=r"sun\.txt does not exist"):
        dataset.sources["Sun"]()
    same = {**SUN, "nqa_title": "Rain"}
    dataset = NARRATIVEQA.read(written(tmp_path, asked(), books=[same, BOOK]))
    assert list(dataset.sources) == ["Rain (d2)", "Rain (d1)"]
    with pytest.raises(InputError, match="items 1 and 2 have the same id 'd1'"):
        NARRATIVEQA.read(written(tmp_path, asked(), books=[BOOK, {**BOOK, "nqa_title": "Sun"}]))


def test_a_memory_does_not_see_the_answers(tmp_path: Path) -> None:
    one = seen(read(tmp_path, asked(answers=["Zoe"])))
    assert one == seen(read(tmp_path, asked(answers=["Yann", "Bo"])))
    assert "Zoe" not in repr(one)


def test_spaces_of_the_tokenised_columns(tmp_path: Path) -> None:
    texts = {
        "Who is it ?": "Who is it?",
        "What ca n't Monty tell ?": "What can't Monty tell?",
        "Tom-All-Alone s": "Tom-All-Alone s",
        "$ 1 million , at least": "$1 million, at least",
        "Ann ( the elder ) left .": "Ann (the elder) left.",
        "Ann 's friend": "Ann's friend",
        "at 3 .5 or .5": "at 3 .5 or .5",
        "  Why  so\tlate ?": "Why so late?",
    }
    dataset = read(tmp_path, *(asked(question=tokenised) for tokenised in texts))
    assert [item.question.text for item in dataset.items] == [*texts.values()]


@pytest.mark.parametrize("line", ["{", asked(question=""), asked(document_id="d9")])
def test_a_bad_line_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match=r"3: |question 3"):
        read(tmp_path, asked(), asked(), line)


DOCUMENTS = """\
document_id,set,kind,story_url,wiki_title
0a1,test,gutenberg,http://example.org/a,Rain
0b2,train,movie,http://example.org/b,"Sun, the"
"""
QUESTIONS = """\
document_id,set,question,answer1,answer2,question_tokenized,answer1_tokenized,answer2_tokenized
0b2,train,Why?,Yes.,,Why ?,Yes .,
0a1,test,"Who's Bo, and
why?",Ann's friend,The friend,Who 's Bo ?,Ann 's friend,The friend
"""


def official(
    folder: Path, documents: str = DOCUMENTS, questions: str = QUESTIONS, *stories: str
) -> Path:
    (folder / "documents.csv").write_text(documents)
    (folder / "qaps.csv").write_text(questions)
    (folder / "tmp").mkdir()
    for id in stories or ("0a1", "0b2"):
        (folder / "tmp" / f"{id}.content").write_text(TEXT)
    return folder


def test_the_official_release_is_read_in_its_own_words(tmp_path: Path) -> None:
    dataset = NARRATIVEQA.read(official(tmp_path))
    [rain, sun] = dataset.items
    assert rain.question.text == "Who's Bo, and why?"
    assert (rain.id, rain.golds) == ("Rain/q0", ("Ann's friend", "The friend"))
    assert rain.labels == {"set": "test", "kind": "gutenberg"}
    assert (sun.source, sun.golds) == ("Sun, the", ("Yes.",))
    assert document_of(dataset, "Rain").text == "It rained."
    assert set(dataset.sha256) == {"documents.csv", "qaps.csv", "0a1.content", "0b2.content"}


def test_a_story_goes_from_its_start_to_its_end(tmp_path: Path) -> None:
    ends = DOCUMENTS.replace("wiki_title", "wiki_title,story_start,story_end")
    ends = ends.replace("a,Rain", "a,Rain,It began,and ended").replace('the"', 'the",No such,words')
    folder = official(tmp_path, ends)
    text = "Licence. It\nbegan with rain. It rained\nand ended in sun. Licence."
    (folder / "tmp" / "0a1.content").write_text(text)
    dataset = NARRATIVEQA.read(folder)
    assert document_of(dataset, "Rain").text == "It\nbegan with rain. It rained\nand ended"
    assert document_of(dataset, "Sun, the").text == "It rained."


def test_stories_that_were_not_fetched_are_left_out_with_a_note(tmp_path: Path) -> None:
    dataset = NARRATIVEQA.read(official(tmp_path, DOCUMENTS, QUESTIONS, "0b2"))
    assert [item.source for item in dataset.items] == ["Sun, the"]
    assert dataset.notes == ("1 of 2 stories are not in tmp, or empty: left out",)
    (tmp_path / "tmp" / "0a1.content").touch()
    assert NARRATIVEQA.read(tmp_path).items == dataset.items
    (tmp_path / "tmp" / "0b2.content").unlink()
    with pytest.raises(InputError, match="holds no story") as caught:
        NARRATIVEQA.read(tmp_path)
    assert "download_stories" in caught.value.hint


@pytest.mark.parametrize(
    ("documents", "questions"),
    [
        (DOCUMENTS.replace("0b2", "../b"), QUESTIONS),
        (DOCUMENTS.replace("0b2", "0a1"), QUESTIONS),
        (DOCUMENTS, QUESTIONS.replace("0a1", "0c3")),
        (DOCUMENTS, QUESTIONS[: QUESTIONS.index("why?")]),
    ],
)
def test_a_bad_release_is_refused(tmp_path: Path, documents: str, questions: str) -> None:
    with pytest.raises(InputError):
        NARRATIVEQA.read(official(tmp_path, documents, questions))


@pytest.mark.data
def test_the_real_books(development_data: Path) -> None:
    dataset = NARRATIVEQA.read(development_data / "narrativeqa")
    counts = Counter(item.source for item in dataset.items)
    assert {name: counts[name] for name in dataset.sources} == {
        "Bleak House": 30,
        "Brewster's Millions": 29,
        "Siddhartha (novel)": 29,
        "The Adventures of Sherlock Holmes": 28,
        "The Gods of Mars": 0,
        "The Picture of Dorian Gray": 29,
    }
    assert {len(item.golds) for item in dataset.items} == {2}
    for name in dataset.sources:
        document = document_of(dataset, name)
        assert "gutenberg-tm" not in document.text.lower()
        assert "gutenberg ebook" not in document.text.lower()
        assert "Produced by" not in document.text[:2000]
        assert len(document.sections) >= 13
    for item in dataset.items:
        assert not any(f" {mark}" in item.question.text for mark in ".,?!;:"), item
