"""A file to a Document: what kind it is, the reader for that kind, and clear refusals.

    >>> read_document(Path("story.epub")).section_at(12_000).label  # doctest: +SKIP
    'II. The Red-headed League'

Content beats the file's name: a PDF called ``story.txt`` is read as a PDF. It knows nothing of
what is done with a document later, and fetches nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mgl.errors import InputError, UsageError
from mgl.text import epub, markup, pdf, plain
from mgl.text.files import read_bytes
from mgl.types import Document

__all__ = ["read_document"]

_TEXT_READERS: dict[str, Callable[[bytes, str, str | None], Document]] = {
    "text": plain.read_text,
    "Markdown": plain.read_markdown,
    "HTML": markup.read_html,
}
_PACKED_READERS: dict[str, Callable[[bytes, str], Document]] = {
    "EPUB": epub.read_epub,
    "PDF": pdf.read_pdf,
}
_SUFFIXES = {
    ".txt": "text", ".text": "text",
    ".md": "Markdown", ".markdown": "Markdown",
    ".html": "HTML", ".htm": "HTML", ".xhtml": "HTML",
    ".epub": "EPUB",
    ".pdf": "PDF",
}  # fmt: skip
_BINARIES = (
    (b"\x89PNG", "a PNG picture"),
    (b"\xff\xd8\xff", "a JPEG picture"),
    (b"GIF8", "a GIF picture"),
    (b"\x7fELF", "a program"),
    (b"MZ\x90\0", "a program"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"\xd0\xcf\x11\xe0", "an old Microsoft Office document"),
    (b"{\\rtf", "an RTF document"),
    (b"AT&TFORM", "a DjVu document"),
)
_KINDS_HINT = "give a text, Markdown, HTML, EPUB or PDF file (save or convert it as one of these)"


def read_document(path: Path, *, encoding: str | None = None) -> Document:
    """Read a txt, md, html, epub or pdf file.

    ``encoding`` names the encoding of a text, Markdown or HTML file where the detected one is
    wrong. ``Document.notes`` says what was decided without being asked. Raises InputError, and
    UsageError for an encoding that does not exist or apply.
    """
    data = read_bytes(path)
    kind, notes = _kind(data, path)
    if kind in _TEXT_READERS:
        document = _TEXT_READERS[kind](data, path.name, encoding)
    elif encoding is None:
        document = _PACKED_READERS[kind](data, path.name)
    else:
        raise UsageError(
            f"an encoding cannot be chosen for {path}", hint=f"leave it out: {kind} brings its own"
        )
    if not document.text or document.text.isspace():
        raise InputError(f"{path} holds white space only", hint="give a file that holds text")
    return replace(document, notes=(*notes, *document.notes))


def _kind(data: bytes, path: Path) -> tuple[str, tuple[str, ...]]:
    """Which reader, and what there is to say about the choice."""
    suffix = path.suffix.lower()
    named = _SUFFIXES.get(suffix)
    found = _sniffed(data, path)
    if named in ("EPUB", "PDF") and found != named:
        raise InputError(
            f"{path} is not {'an' if named == 'EPUB' else 'a'} {named}: its first bytes are not "
            "those of one",
            hint="it is damaged or wrongly named: fetch it again, or rename it",
        )
    if found in ("EPUB", "PDF"):
        note = f"named {path.name}, but its content is {found}: read as {found}"
        return found, () if named == found else (note,)
    if named:
        return named, ()
    kind = found or "text"
    extension = f"unknown extension {suffix}" if suffix else "no extension"
    return kind, (f"{extension}: read as {kind}",)


def _sniffed(data: bytes, path: Path) -> str | None:
    head = data[:1024]
    for mark, kind in _BINARIES:
        if head.startswith(mark):
            raise InputError(f"{path} is {kind}, not a text", hint=_KINDS_HINT)
    if data[60:68] in (b"BOOKMOBI", b"TEXtREAd"):
        raise InputError(f"{path} is a Kindle or Palm book", hint="convert it to EPUB first")
    if head.startswith(b"PK\x03\x04"):
        if epub.is_epub(data) or path.suffix.lower() == ".epub":
            return "EPUB"
        raise InputError(f"{path} is a zip archive or an office document", hint=_KINDS_HINT)
    if head.startswith(b"%PDF-") or (path.suffix.lower() == ".pdf" and b"%PDF-" in head):
        return "PDF"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return "HTML" if start.startswith((b"<!doctype html", b"<html")) else None
