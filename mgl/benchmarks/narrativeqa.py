"""NarrativeQA: whole novels, with questions that were asked of their summaries.

Source: Kočiský et al., The NarrativeQA Reading Comprehension Challenge (TACL 2018); Apache-2.0,
the books of Project Gutenberg. A folder of three things is read: ``books.json`` names the books
(``file``, ``nqa_document_id``, ``nqa_title``), ``books/`` holds them, ``qaps.jsonl`` has a question
a line (``document_id``, ``question``, ``answers``) in the words of the official tokenised columns.

    >>> dataset = NARRATIVEQA.read(Path("narrativeqa"))         # doctest: +SKIP
    >>> dataset.items[0].question.text                          # doctest: +SKIP
    "What is the name of Lady Dedlock s Lover?"

Spaces before punctuation are taken away. Apostrophes that the columns lost (``Dedlock s``) are not
guessed. That the asker knew a summary and not the book is part of the benchmark.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import DataFile, data_file, hashes, refuse_duplicates
from mgl.errors import InputError
from mgl.text.gutenberg import without_licence
from mgl.text.reading import read_document
from mgl.types import Document, Question

__all__ = ["NARRATIVEQA"]

_NO_SPACE_BEFORE: Final = re.compile(
    r"\s+(?=[.,;:!?)\]%](?:\s|$))|(?<=\w)\s+(?=n't\b|'(?:s|re|ve|ll|d|m)\b)"
)
_NO_SPACE_AFTER: Final = re.compile(r"(?<=[$(\[])\s+")


class _Book(BaseModel):
    file: str = Field(min_length=1)
    nqa_document_id: str
    nqa_title: str


class _Question(BaseModel):
    document_id: str
    question: str = Field(min_length=1)
    answers: list[str] = Field(min_length=1)


def _read(folder: Path) -> Dataset:
    """The books in the order of ``books.json`` with their questions; one may have none.

    InputError, with the line, where a file is not as described or a question names no book. A
    book is looked for when its source is read, and is without Project Gutenberg's header.
    """
    listed = data_file(folder / "books.json")
    books = listed.rows(_Book, hint="each book needs file, nqa_document_id and nqa_title")
    refuse_duplicates(listed.path, (book.nqa_document_id for book in books))
    asked = data_file(folder / "qaps.jsonl")
    names = _names(books)
    items = _items(asked, names)
    order = {name: place for place, name in enumerate(names.values())}
    paths = {names[book.nqa_document_id]: folder / "books" / book.file for book in books}
    texts = [data_file(path) for path in paths.values() if path.is_file()]
    return Dataset(
        tuple(sorted(items, key=lambda item: order[item.source])),
        {name: partial(_document, path) for name, path in paths.items()},
        hashes([listed, asked, *texts]),
    )


def _names(books: Sequence[_Book]) -> dict[str, str]:
    """The title of each book by its document id; with the id where two have one title."""
    titles = Counter(book.nqa_title for book in books)
    return {
        book.nqa_document_id: book.nqa_title
        if titles[book.nqa_title] == 1
        else f"{book.nqa_title} ({book.nqa_document_id})"
        for book in books
    }


def _items(file: DataFile, names: Mapping[str, str]) -> list[Item]:
    """The questions in the file's order; an id is the book's title and the place in the book."""
    asked: Counter[str] = Counter()
    items: list[Item] = []
    rows = file.rows(_Question, hint="each line has document_id, question and answers")
    for number, row in enumerate(rows, start=1):
        if row.document_id not in names:
            raise InputError(
                f"{file.path}, question {number}: document {row.document_id} is not in books.json",
                hint="list its book there, or take the question out",
            )
        name = names[row.document_id]
        question = Question(_untokenised(row.question))
        golds = tuple(map(_untokenised, row.answers))
        items.append(Item(f"{name}/q{asked[name]}", name, question, golds))
        asked[name] += 1
    return items


def _document(path: Path) -> Document:
    return without_licence(read_document(path))


def _untokenised(text: str) -> str:
    joined = _NO_SPACE_BEFORE.sub("", " ".join(text.split()))
    return _NO_SPACE_AFTER.sub("", joined)


NARRATIVEQA: Final = FileBenchmark(
    name="narrativeqa",
    about=About(
        title="NarrativeQA, whole stories",
        paper="Kočiský et al., The NarrativeQA Reading Comprehension Challenge, TACL 2018, "
        "arXiv:1712.07040",
        where="https://github.com/google-deepmind/narrativeqa (questions), "
        "https://www.gutenberg.org (books)",
        licence="Apache-2.0 (questions), Project Gutenberg Licence (books)",
        files="books.json, qaps.jsonl and books/*.txt, in one folder",
        items=None,
        folder="narrativeqa",
    ),
    reads="document",
    scorers=("cascade_mindgraph", "f1_squad", "rouge_l_recall", "meteor"),
    judge="narrativeqa",
    read=_read,
)
