"""A book of a benchmark by words of its title, and a part of it as a document of its own.

    >>> find_book(Path("data"), "gods mars").title           # doctest: +SKIP
    'The Gods of Mars'

The folder holds ``narrativeqa``, ``nocha`` or both, as their loaders read them. Positions in a
part count from where it begins, its name tells which part it is, and what is said of it holds for
it alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mgl.benchmarks.base import FileBenchmark, Item
from mgl.benchmarks.narrativeqa import NARRATIVEQA
from mgl.benchmarks.nocha import NOCHA
from mgl.errors import UsageError
from mgl.types import Document, Section

__all__ = ["Book", "books_of", "chapters", "excerpt", "find_book"]


@dataclass(frozen=True)
class Book:
    """A book, the benchmark that it is of, and what that asks of it, which may be nothing."""

    benchmark: str
    title: str
    questions: tuple[Item, ...]
    read: Callable[[], Document]


def find_book(folder: Path, words: str) -> Book:
    """The one book whose title holds all the words; UsageError where none does, or several."""
    known = [book for benchmark in (NARRATIVEQA, NOCHA) for book in books_of(benchmark, folder)]
    wanted = words.lower().split()
    found = [book for book in known if all(word in book.title.lower() for word in wanted)]
    if len(found) != 1:
        titles = "; ".join(book.title for book in found or known)
        raise UsageError(
            f"{len(found)} books of {folder} have {words!r} in their title",
            hint=f"name one of: {titles}" if known else "it holds narrativeqa, or nocha, or both",
        )
    return found[0]


def books_of(benchmark: FileBenchmark, folder: Path) -> list[Book]:
    """The books of a benchmark whose own folder is in ``folder``; none where it is not."""
    place = folder / benchmark.about.folder
    if not place.is_dir():
        return []
    dataset = benchmark.read(place)
    return [
        Book(
            benchmark.name,
            name.replace("_", " "),
            tuple(item for item in dataset.items if item.source == name),
            cast(Callable[[], Document], read),
        )
        for name, read in dataset.sources.items()
    ]


def excerpt(document: Document, start: int, end: int) -> Document:
    """The characters [start, end), cut at the document's end; UsageError where they hold no text.

    Chapters that the part holds a piece of are its sections.
    """
    if not 0 <= start < end or not document.text[start:end].strip():
        raise UsageError(
            f"{document.name} has {len(document.text):,} characters and no text from "
            f"{start:,} to {end:,}",
            hint="give the first and last character of a part, counted from 0",
        )
    return _part(document, start, min(end, len(document.text)), f"characters {start}-{end}")


def chapters(document: Document, first: int, last: int) -> Document:
    """The chapters from one to another, counted from 1; UsageError where there are not so many."""
    count = len(document.sections)
    if not 1 <= first <= last <= count:
        raise UsageError(
            f"{document.name} has {count} chapters, and {first} to {last} are no part of them",
            hint="they count from 1, headings before the first chapter among them"
            if count
            else "none were found: take a part by its characters",
        )
    start, end = document.sections[first - 1].start, document.sections[last - 1].end
    return _part(document, start, end, f"chapters {first}-{last}")


def _part(document: Document, start: int, end: int, which: str) -> Document:
    sections = tuple(
        Section(own.kind, own.label, max(own.start, start) - start, min(own.end, end) - start)
        for own in document.sections
        if own.start < end and own.end > start
    )
    stem, dot, suffix = document.name.rpartition(".")
    return Document.from_text(
        f"{stem} {which}.{suffix}" if dot else f"{suffix} {which}",
        document.text[start:end],
        sections=sections,
        media_type=document.media_type,
        notes=(*document.notes, f"a part of {document.name}: {which}"),
    )
