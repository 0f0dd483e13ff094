"""Prelude: stories of what a character lived through before a book; each fits it or does not.

Source: Yu et al., PRELUDE: A Benchmark Designed to Require Global Comprehension and Reasoning over
Long Contexts (2025). Its rows (``book_name``, ``char``, ``content``, ``label``) come without the
books: a folder ``books`` beside them holds those that the user has, each by its ``book_name``
(``The Count of Monte Cristo.txt``, or another format that mgl reads). Items of other books are left
out, with a note: HGMem asks the English ones alone.

The release is Parquet, which is read where pyarrow is installed; rows of it as JSON or JSON Lines
are read as they are. ``chunks``, which a row may have besides, are the authors' retrieval and are
not read. How the question is put is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field

from mgl.benchmarks.base import About, Dataset, FileBenchmark, Item
from mgl.benchmarks.files import (
    hash_files,
    open_file,
    parquet_as_json,
    refuse_duplicates,
    with_labels,
)
from mgl.errors import InputError
from mgl.text.reading import read_document, strip_gutenberg
from mgl.types import Document, Question, Source

LABELS: Final = ("Consistent", "Contradict")
OPTIONS: Final = ("CONSISTENT", "CONTRADICT")
QUESTION: Final = (
    "The following story tells what {char} lived through before {book} begins.\n"
    "[Story]: {story}\n"
    "[Question]: Is this story consistent with the book, or does it contradict it? "
    "Answer CONSISTENT or CONTRADICT."
)
FILES: Final = ("prelude.jsonl", "prelude.json", "public.parquet", "all.parquet", "subset.parquet")


def _label(value: object) -> object:
    return value.strip().capitalize() if isinstance(value, str) else value


class _Row(BaseModel):
    id: str | int | None = None
    book_name: str = Field(min_length=1)
    char: str = Field(min_length=1)
    content: str = Field(min_length=1)
    label: Annotated[Literal["Consistent", "Contradict"], BeforeValidator(_label)]


def _read(path: Path) -> Dataset:
    """The items whose book is there, in the file's order: ``category`` is the book, the gold one of
    ``LABELS``, which are the choices.

    InputError if a row is not as described or no book is there; UsageError if Parquet
    cannot be read.
    """
    file = open_file(path, *FILES)
    rows = parquet_as_json(file, "prelude.jsonl").rows(
        _Row, hint="each row has book_name, char, content and label"
    )
    ids = [str(number if row.id is None else row.id) for number, row in enumerate(rows)]
    refuse_duplicates(file.path, ids)
    names = dict.fromkeys(row.book_name for row in rows)
    books = _books(file.path.parent / "books", list(names))
    notes = tuple(
        f"{name}: no book of this name, {_number(rows, name)} items left out"
        for name in names
        if name not in books
    )
    items = tuple(
        Item(
            id=id,
            source=row.book_name,
            question=Question(
                QUESTION.format(char=row.char, book=row.book_name, story=row.content),
                options=OPTIONS,
            ),
            golds=(row.label,),
            category=row.book_name,
            choices=LABELS,
        )
        for id, row in zip(ids, rows, strict=True)
        if row.book_name in books
    )
    sources: dict[str, Callable[[], Source]] = {
        name: partial(_book, book) for name, book in books.items()
    }
    held = [file, *map(open_file, books.values())]
    return Dataset(items, sources, hash_files(held), notes)


def _books(folder: Path, names: Sequence[str]) -> dict[str, Path]:
    """Find the books' files by name, in any format."""
    held = {path.stem: path for path in sorted(folder.iterdir())} if folder.is_dir() else {}
    found = {name: held[name] for name in names if name in held}
    if not found:
        raise InputError(
            f"{folder} holds none of the books that Prelude asks about",
            hint=f"put one or more there, for instance as: {names[0]}.txt",
        )
    return found


def _book(path: Path) -> Document:
    return strip_gutenberg(read_document(path))


def _number(rows: Sequence[_Row], name: str) -> int:
    return sum(row.book_name == name for row in rows)


PRELUDE: Final = FileBenchmark(
    name="prelude",
    about=About(
        title="PRELUDE",
        paper="Yu et al., PRELUDE: A Benchmark Designed to Require Global Comprehension and "
        "Reasoning over Long Contexts, arXiv:2508.09848",
        where="https://gorov.github.io/prelude; books of Project Gutenberg, or your own",
        licence="see the dataset's card; the books have their own",
        files="prelude.jsonl (or the release's Parquet) and books/NAME.txt",
        items=None,
        folder="prelude",
    ),
    reads="document",
    scorers=("label_accuracy", "macro_f1"),
    judge=None,
    read=with_labels(_read),
)
