"""A book of a benchmark by words of its title.

    >>> find_book(Path("data"), "gods mars").title           # doctest: +SKIP
    'The Gods of Mars'

The folder holds ``narrativeqa``, ``nocha`` or both, as their loaders read them.
"""

from __future__ import annotations

from pathlib import Path

from mgl.benchmarks.narrativeqa import NarrativeBook, read_narrativeqa
from mgl.benchmarks.nocha import NochaBook, read_nocha
from mgl.errors import UsageError

__all__ = ["Book", "find_book"]

Book = NarrativeBook | NochaBook


def find_book(folder: Path, words: str) -> Book:
    """The one book whose title holds all the words; UsageError where none does, or several."""
    known: list[Book] = []
    if (folder / "narrativeqa").is_dir():
        known += read_narrativeqa(folder / "narrativeqa")
    if (folder / "nocha").is_dir():
        known += read_nocha(folder / "nocha")
    wanted = words.lower().split()
    found = [book for book in known if all(word in book.title.lower() for word in wanted)]
    if len(found) != 1:
        titles = "; ".join(book.title for book in found or known)
        raise UsageError(
            f"{len(found)} books of {folder} have {words!r} in their title",
            hint=f"name one of: {titles}" if known else "it holds narrativeqa, or nocha, or both",
        )
    return found[0]
