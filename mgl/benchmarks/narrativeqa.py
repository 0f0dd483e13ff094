"""NarrativeQA: whole novels, with questions that were asked of their summaries.

Source: Kočiský et al., The NarrativeQA Reading Comprehension Challenge (TACL 2018); Apache-2.0,
the books of Project Gutenberg. A folder of three things is read: ``books.json`` names the books
(``file``, ``nqa_document_id``, ``nqa_title``), ``books/`` holds them, ``qaps.jsonl`` has a question
a line (``document_id``, ``question``, ``answers``) in the words of the official tokenised columns.

    >>> books = read_narrativeqa(Path("narrativeqa"))           # doctest: +SKIP
    >>> books[0].questions[0].text                              # doctest: +SKIP
    "What is the name of Lady Dedlock s Lover?"

Spaces before punctuation are taken away. Apostrophes that the columns lost (``Dedlock s``) are not
guessed. That the asker knew a summary and not the book is part of the benchmark.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from mgl.errors import InputError
from mgl.text.conversations import read_json
from mgl.text.encoding import decode
from mgl.text.files import read_bytes
from mgl.text.gutenberg import without_licence
from mgl.text.reading import read_document
from mgl.types import Document

__all__ = ["NarrativeBook", "NarrativeQuestion", "read_narrativeqa"]

_NO_SPACE_BEFORE = re.compile(
    r"\s+(?=[.,;:!?)\]%](?:\s|$))|(?<=\w)\s+(?=n't\b|'(?:s|re|ve|ll|d|m)\b)"
)
_NO_SPACE_AFTER = re.compile(r"(?<=[$(\[])\s+")


@dataclass(frozen=True, slots=True)
class NarrativeQuestion:
    """A question and its reference answers, of which the benchmark gives two.

    ``id`` is the book's title and the question's place among the book's, from 0.
    """

    id: str
    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NarrativeBook:
    """A book's place on the disk and its questions; ``id`` is the benchmark's document id."""

    id: str
    title: str
    path: Path
    questions: tuple[NarrativeQuestion, ...]

    def read(self) -> Document:
        """The book without Project Gutenberg's header and licence; InputError where it is gone."""
        return without_licence(read_document(self.path))


class _Book(BaseModel):
    file: str = Field(min_length=1)
    nqa_document_id: str
    nqa_title: str


class _Question(BaseModel):
    document_id: str
    question: str = Field(min_length=1)
    answers: list[str] = Field(min_length=1)


def read_narrativeqa(folder: Path) -> list[NarrativeBook]:
    """The books in the order of ``books.json``; one may have no questions.

    InputError, with the line, where a file is not as described or a question names no book.
    """
    books = _books(folder / "books.json")
    titles = {book.nqa_document_id: book.nqa_title for book in books}
    questions = _questions(folder / "qaps.jsonl", titles)
    return [
        NarrativeBook(
            book.nqa_document_id,
            book.nqa_title,
            folder / "books" / book.file,
            tuple(questions[book.nqa_document_id]),
        )
        for book in books
    ]


def _books(path: Path) -> Sequence[_Book]:
    value = read_json(decode(read_bytes(path), path.name).text, path)
    try:
        return TypeAdapter(list[_Book]).validate_python(value)
    except ValidationError as error:
        raise InputError(
            f"{path} is no list of books: {_first(error)}",
            hint="each needs file, nqa_document_id and nqa_title",
        ) from error


def _questions(path: Path, titles: Mapping[str, str]) -> dict[str, list[NarrativeQuestion]]:
    found: dict[str, list[NarrativeQuestion]] = defaultdict(list)
    lines = decode(read_bytes(path), path.name).text.split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            read = _Question.model_validate(json.loads(line))
        except (ValueError, RecursionError) as error:
            why = _first(error) if isinstance(error, ValidationError) else str(error)
            raise InputError(
                f"{path}, line {number}: {why}",
                hint="each line is an object with document_id, question and answers",
            ) from error
        if read.document_id not in titles:
            raise InputError(
                f"{path}, line {number}: document {read.document_id} is not in books.json",
                hint="list its book there, or take the line out",
            )
        own = found[read.document_id]
        own.append(
            NarrativeQuestion(
                f"{titles[read.document_id]}/q{len(own)}",
                _untokenised(read.question),
                tuple(map(_untokenised, read.answers)),
            )
        )
    return found


def _first(error: ValidationError) -> str:
    fault = error.errors()[0]
    return f"{'.'.join(map(str, fault['loc'])) or 'value'}: {fault['msg']}"


def _untokenised(text: str) -> str:
    joined = _NO_SPACE_BEFORE.sub("", " ".join(text.split()))
    return _NO_SPACE_AFTER.sub("", joined)
