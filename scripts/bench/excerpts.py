"""A part of a document as a document of its own, whose positions count from where it begins.

    >>> book = Document.from_text("a.txt", "It rained. It stopped.")
    >>> excerpt(book, 11, 22).text
    'It stopped.'

Its name tells which part it is. A part is for trying things on less than a whole book; what is said
of a part holds for that part alone.
"""

from __future__ import annotations

from mgl.errors import UsageError
from mgl.types import Document, Section

__all__ = ["chapters", "excerpt"]


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
