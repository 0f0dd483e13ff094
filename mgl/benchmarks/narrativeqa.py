"""NarrativeQA: whole novels, with questions that were asked of their summaries.

Source: Kočiský et al., The NarrativeQA Reading Comprehension Challenge (TACL 2018); Apache-2.0,
the books of Project Gutenberg. Two folders are read:

- the official release: ``documents.csv`` and ``qaps.csv``, with the stories that its script fetches
  as ``tmp/ID.content``; stories that are not there are left out, with their questions. A story goes
  from ``story_start`` to ``story_end``, where its text has them;
- a choice of books: ``books.json`` names them (``file``, ``nqa_document_id``, ``nqa_title``),
  ``books/`` holds them, ``qaps.jsonl`` has a question a line (``document_id``, ``question``,
  ``answers``), be it in the words of the official tokenised columns.

HGMem asks 100 questions about 10 random books of over 100,000 tokens, and does not say which; items
with ``labels["selection"]`` ``hgmem`` are such a choice: 10 books of 400,000 bytes or more, 10
questions of each, drawn by their names. Of tokenised questions spaces before punctuation are taken
away; apostrophes that the columns lost (``Dedlock s``) are not guessed. That the asker knew a
summary and not the book is part of the benchmark.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import gold_texts, hash_files, open_file, refuse_duplicates, with_labels
from mgl.errors import InputError
from mgl.text.chapters import sections, text_headings
from mgl.text.reading import read_document, strip_gutenberg
from mgl.types import Document, Question

LONG_BYTES: Final = 400_000
"""100,000 tokens at four characters each."""
BOOKS: Final = 10
QUESTIONS: Final = 10
_NO_SPACE_BEFORE: Final = re.compile(
    r"\s+(?=[.,;:!?)\]%](?:\s|$))|(?<=\w)\s+(?=n't\b|'(?:s|re|ve|ll|d|m)\b)"
)
_NO_SPACE_AFTER: Final = re.compile(r"(?<=[$(\[])\s+")


class _Book(BaseModel):
    file: str = Field(min_length=1)
    nqa_document_id: str
    nqa_title: str
    labels: dict[str, str] = {}
    start: str = ""
    end: str = ""


class _Question(BaseModel):
    document_id: str
    question: str = Field(min_length=1)
    answers: list[str] = Field(min_length=1)


class _OfficialDocument(BaseModel):
    document_id: str = Field(pattern=r"^[0-9a-f]+$")
    set: str
    kind: str
    wiki_title: str
    story_start: str | None = None
    story_end: str | None = None

    @property
    def book(self) -> _Book:
        return _Book(
            file=f"{self.document_id}.content",
            nqa_document_id=self.document_id,
            nqa_title=self.wiki_title.strip() or self.document_id,
            labels={"set": self.set, "kind": self.kind},
            start=self.story_start or "",
            end=self.story_end or "",
        )


class _OfficialQuestion(BaseModel):
    document_id: str
    question: str = Field(min_length=1)
    answer1: str
    answer2: str

    @property
    def answers(self) -> list[str]:
        return [self.answer1, self.answer2]


def _read(folder: Path) -> Dataset:
    """Read the books of a folder with their questions; a book may have none.

    InputError, with the line, if a file is not as described or a question names no book. A
    book is looked for when its source is read, and is without Project Gutenberg's header.
    """
    official = (folder / "documents.csv").is_file()
    listed = open_file(folder / ("documents.csv" if official else "books.json"))
    asked = open_file(folder / ("qaps.csv" if official else "qaps.jsonl"))
    questions: Sequence[_Question | _OfficialQuestion]
    if official:
        rows = listed.rows(_OfficialDocument, hint="take documents.csv of the release")
        books = [row.book for row in rows]
        questions = asked.rows(_OfficialQuestion, hint="take qaps.csv of the release")
    else:
        books = listed.rows(_Book, hint="each book needs file, nqa_document_id and nqa_title")
        questions = asked.rows(_Question, hint="each line has document_id, question and answers")
    refuse_duplicates(listed.path, (book.nqa_document_id for book in books))
    named = _name_books(books)
    items = list(_make_items(asked.path, questions, named))
    paths = {
        name: folder / ("tmp" if official else "books") / book.file for name, book in named.items()
    }
    sizes = {name: path.stat().st_size if path.is_file() else 0 for name, path in paths.items()}
    here = {name: path for name, path in paths.items() if sizes[name] or not official}
    if not here:
        raise InputError(
            f"{folder} holds no story", hint="fetch them with the release's download_stories.sh"
        )
    by_book = [item for name in here for item in items if item.source == name]
    left_out = len(paths) - len(here)
    return Dataset(
        tuple(_mark_selection(by_book, [name for name in here if sizes[name] >= LONG_BYTES])),
        {name: partial(_read_book, path, named[name]) for name, path in here.items()},
        hash_files([listed, asked, *(open_file(path) for path in here.values() if path.is_file())]),
        (f"{left_out} of {len(paths)} stories are not in tmp, or empty: left out",)
        if left_out
        else (),
    )


def _mark_selection(items: Sequence[Item], long: Sequence[str]) -> Iterator[Item]:
    """Mark a choice of items as HGMem makes it, the same on every machine."""
    draw = random.Random(0)
    asked = sorted({item.source for item in items} & {*long})
    chosen: set[str] = set()
    for name in draw.sample(asked, min(BOOKS, len(asked))):
        own = [item.id for item in items if item.source == name]
        chosen.update(draw.sample(own, min(QUESTIONS, len(own))))
    for item in items:
        mark = {"selection": "hgmem"} if item.id in chosen else {}
        yield replace(item, labels={**item.labels, **mark})


def _name_books(books: Sequence[_Book]) -> dict[str, _Book]:
    """Map titles to books; two books with one title are named by title and id."""
    titles = Counter(book.nqa_title for book in books)
    return {
        book.nqa_title
        if titles[book.nqa_title] == 1
        else f"{book.nqa_title} ({book.nqa_document_id})": book
        for book in books
    }


def _make_items(
    path: Path, questions: Sequence[_Question | _OfficialQuestion], named: Mapping[str, _Book]
) -> Iterator[Item]:
    """Make the items in the file's order; an id is the book's name and a number."""
    names = {book.nqa_document_id: (name, book) for name, book in named.items()}
    asked: Counter[str] = Counter()
    for number, row in enumerate(questions, start=1):
        if row.document_id not in names:
            raise InputError(
                f"{path}, question {number}: document {row.document_id} has no book",
                hint="list its book, or take the question out",
            )
        name, book = names[row.document_id]
        yield Item(
            f"{name}/q{asked[name]}",
            name,
            Question(_detokenize(row.question)),
            gold_texts([_detokenize(answer) for answer in row.answers]),
            labels=book.labels,
        )
        asked[name] += 1


def _read_book(path: Path, book: _Book) -> Document:
    document = read_document(path)
    start, end = _places(book.start, document.text), _places(book.end, document.text)
    if not start or not end or start[0][0] >= end[-1][1]:
        return strip_gutenberg(document)
    text = document.text[start[0][0] : end[-1][1]]
    parts = sections(text_headings(text), len(text))
    return Document.from_text(document.name, text, sections=parts, notes=document.notes)


def _places(words: str, text: str) -> list[tuple[int, int]]:
    """Where the words stand in a text, however white space parts them."""
    pattern = r"\s+".join(map(re.escape, words.split()))
    return [found.span() for found in re.finditer(pattern, text)] if pattern else []


def _detokenize(text: str) -> str:
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
        files="documents.csv, qaps.csv and tmp/*.content, or books.json, qaps.jsonl and books/*",
        items=46765,
        folder="narrativeqa",
    ),
    reads="document",
    scorers=("cascade_mindgraph", "exact_match", "f1_squad", "rouge_l_recall"),
    judge="entailment",
    read=with_labels(_read),
)
