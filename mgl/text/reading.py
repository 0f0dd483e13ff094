"""Read a file into a Document: text, Markdown, HTML, EPUB, Word or PDF.

    >>> read_document(Path("story.epub")).section_at(12_000).label  # doctest: +SKIP
    'II. The Red-headed League'

Content beats the file's name: a PDF called ``story.txt`` is read as a PDF. Nothing is fetched.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from mgl.errors import InputError
from mgl.text import docx, epub, markup, pdf
from mgl.text.chapters import markdown_headings, sections, text_headings
from mgl.text.encoding import decode
from mgl.types import Document

MAX_BYTES = 256 * 1024 * 1024


def read_bytes(path: Path, *, largest: int = MAX_BYTES) -> bytes:
    """Read a regular file of at most ``largest`` bytes; InputError where that cannot be done."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise InputError(f"{path} is a folder", hint="name one file in it")
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{path} is not a regular file", hint="save its content in a file")
        if status.st_size > largest:
            raise InputError(
                f"{path} has {status.st_size:,} bytes, more than the limit of {largest:,}",
                hint="split it into parts, for instance: split -C 50M FILE",
            )
        with path.open("rb") as file:
            data = file.read()
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist", hint="check its spelling") from error
    except PermissionError as error:
        raise InputError(f"{path} may not be read", hint=f"allow it: chmod u+r '{path}'") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}", hint="check the path") from error
    if not data:
        raise InputError(f"{path} is empty", hint="give a file that holds text")
    return data


def read_text(data: bytes, name: str, *, is_markdown: bool = False) -> Document:
    """Read plain text, or Markdown as it is written, not rendered.

    The text is what the bytes decode to, unchanged, line ends included. Headings of Markdown, or
    lines that look like chapter headings, give its sections.
    """
    decoded = decode(data, name)
    headings = (markdown_headings if is_markdown else text_headings)(decoded.text)
    return Document.from_text(
        name,
        decoded.text,
        sections=sections(headings, len(decoded.text)),
        media_type="text/markdown" if is_markdown else "text/plain",
        notes=decoded.notes,
    )


_EBOOK = r"(?:THE|THIS) PROJECT GUTENBERG E-?BOOK"
_START = re.compile(rf"^\*\*\* ?START OF {_EBOOK}[^*]*\*\*\*", re.IGNORECASE | re.MULTILINE)
_END = re.compile(rf"^\*\*\* ?END OF {_EBOOK}", re.IGNORECASE | re.MULTILINE)
_CREDITS = re.compile(r"\s*(?:Produced by|E-text prepared by)\s(?:[^\r\n]+\r?\n)*", re.IGNORECASE)
_LAST_WORDS = re.compile(
    r"^End of (?:the )?Project Gutenberg[^\r\n]*(?:\r?\n[^\r\n]+)*\s*\Z",
    re.IGNORECASE | re.MULTILINE,
)


def strip_gutenberg(document: Document) -> Document:
    """Strip Project Gutenberg's header, credits and licence; offsets then begin at the book.

    The text is cut at the lines ``*** START OF … ***`` and ``*** END OF … ***``; the credits after
    the first and "End of Project Gutenberg's …" before the second go too. A document without these
    lines, as those from before 1998, is returned as it is. ``notes`` says what was left out.
    """
    text = document.text
    if (start := _START.search(text)) is not None:
        text = text[start.end() :]
        if (credits_ := _CREDITS.match(text)) is not None:
            text = text[credits_.end() :]
    if (end := _END.search(text)) is not None:
        text = _LAST_WORDS.sub("", text[: end.start()])
    if (start is None and end is None) or not text.strip():
        return document
    text = text.strip()
    note = f"Project Gutenberg's header and licence left out: {len(text):,} characters remain"
    return Document.from_text(
        document.name,
        text,
        sections=sections(text_headings(text), len(text)),
        media_type=document.media_type,
        notes=(*document.notes, note),
    )


_READERS: dict[str, Callable[[bytes, str], Document]] = {
    "text": read_text,
    "Markdown": partial(read_text, is_markdown=True),
    "HTML": markup.read_html,
    "EPUB": epub.read_epub,
    "PDF": pdf.read_pdf,
    "Word": docx.read_docx,
}
_PACKED = ("EPUB", "PDF", "Word")
_SUFFIXES = {
    ".txt": "text", ".text": "text",
    ".md": "Markdown", ".markdown": "Markdown",
    ".html": "HTML", ".htm": "HTML", ".xhtml": "HTML",
    ".epub": "EPUB",
    ".pdf": "PDF",
    ".docx": "Word",
}  # fmt: skip


def read_document(path: Path) -> Document:
    """Read a txt, md, html, epub, docx or pdf file; its content decides over its name.

    ``Document.notes`` says what was decided on the way. Raises InputError.
    """
    return parse_document(read_bytes(path), path)


def parse_document(data: bytes, path: Path) -> Document:
    """Read the content of a file whose name is ``path``; as ``read_document``."""
    kind, notes = _choose_reader(data, path)
    document = _READERS[kind](data, path.name)
    if not document.text or document.text.isspace():
        raise InputError(f"{path} holds white space only", hint="give a file that holds text")
    return replace(document, notes=(*notes, *document.notes))


def _choose_reader(data: bytes, path: Path) -> tuple[str, tuple[str, ...]]:
    """Choose the reader, and note why where the name does not tell."""
    suffix = path.suffix.lower()
    named = _SUFFIXES.get(suffix)
    found = name_format(data, named)
    if found in ("zip", "RTF") or (named in _PACKED and found != named):
        kind = named if named in _PACKED else "text"
        raise InputError(
            f"{path} is not {kind}, by its first bytes",
            hint="give a text, Markdown, HTML, EPUB, Word or PDF file, or convert it",
        )
    if found in _PACKED:
        note = f"named {path.name}, but its content is {found}: read as {found}"
        return found, () if named == found else (note,)
    if named:
        return named, ()
    kind = found or "text"
    extension = f"unknown extension {suffix}" if suffix else "no extension"
    return kind, (f"{extension}: read as {kind}",)


def name_format(data: bytes, named: str | None = None) -> str | None:
    """Tell a file's format by its first bytes, where they say it."""
    head = data[:1024]
    if head.startswith(b"PK\x03\x04"):
        if named == "EPUB" or epub.is_epub(data):
            return "EPUB"
        return "Word" if named == "Word" or docx.is_docx(data) else "zip"
    if head.startswith(b"{\\rtf"):
        return "RTF"
    if head.startswith(b"%PDF-") or (named == "PDF" and b"%PDF-" in head):
        return "PDF"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return "HTML" if start.startswith((b"<!doctype html", b"<html")) else None
