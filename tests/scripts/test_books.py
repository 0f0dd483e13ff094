from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from books import find_book

from mgl.errors import UsageError


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
