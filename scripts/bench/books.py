"""A book of a benchmark by words of its title.

    >>> find_book(Path("data"), "gods mars").title           # doctest: +SKIP
    'The Gods of Mars'

The folder holds ``narrativeqa``, ``nocha`` or both, as their loaders read them.
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
from mgl.types import Document

__all__ = ["Book", "books_of", "find_book"]


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
