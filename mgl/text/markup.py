"""HTML to text: what a reader sees, block by block, with the headings as chapters.

    >>> read_html(b"<h1>Rain</h1><p>It <b>rained</b>.</p>", "a.html", None).text
    'Rain\\n\\nIt rained.'

Offsets are those of the extracted text. White space collapses as in a browser, except in ``pre``.
Scripts, styles and templates are left out; nothing is fetched or run.
"""

from __future__ import annotations

import codecs
import re
import warnings
from typing import TYPE_CHECKING

from mgl.errors import InputError
from mgl.text.chapters import Heading, sections
from mgl.text.encoding import Decoded, decode
from mgl.types import Document

if TYPE_CHECKING:
    from bs4.element import PageElement

__all__ = ["decode_page", "extract", "read_html"]

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = frozenset({"head", "script", "style", "template", "noscript", "svg", "math", "iframe"})
_APART = frozenset(_HEADINGS) | {
    "p", "div", "section", "article", "main", "header", "footer", "aside", "nav", "blockquote",
    "ul", "ol", "dl", "dt", "dd", "li", "table", "figure", "figcaption", "pre", "form",
    "fieldset", "address", "hr", "body",
}  # fmt: skip
_SPACES = re.compile(r"[ \t\r\n\f]+")
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE)


def read_html(data: bytes, name: str, encoding: str | None) -> Document:
    """Read an HTML page; its headings give its sections."""
    decoded = decode_page(data, name, encoding=encoding)
    text, headings = extract(decoded.text, name)
    if not text:
        raise InputError(
            f"{name} shows no text",
            hint="the page may be built by a script: save it from the browser as text or PDF",
        )
    return Document.from_text(
        name,
        text,
        sections=sections(headings, len(text)),
        media_type="text/html",
        notes=decoded.notes,
    )


def extract(source: str, name: str) -> tuple[str, tuple[Heading, ...]]:
    """Extract the visible text of an HTML or XHTML source, and its headings."""
    from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
    from bs4.builder import ParserRejectedMarkup

    try:
        with warnings.catch_warnings():  # XHTML, and a page that is one short word, are as meant
            warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
            warnings.simplefilter("ignore", MarkupResemblesLocatorWarning)
            soup = BeautifulSoup(source, "html.parser")
    except ParserRejectedMarkup as error:
        raise InputError(
            f"{name} cannot be parsed as HTML", hint="save the page again, or as text"
        ) from error
    return _Walk().extract(soup)


def decode_page(data: bytes, name: str, *, encoding: str | None = None) -> Decoded:
    """Decode a page, by the encoding that it declares where it is not UTF-8."""
    declared = _DECLARED.search(data[:2048])
    if encoding is None and declared and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            encoding = _check_declared(data, declared[1].decode("ascii"))
    return decode(data, name, encoding=encoding)


def _check_declared(data: bytes, declared: str) -> str | None:
    """Return the declared encoding if it fits the bytes; Latin-1 means Windows-1252."""
    try:
        codec = codecs.lookup(declared).name
        codec = "cp1252" if codec in ("iso8859-1", "ascii") else codec
        data.decode(codec)
    except (LookupError, UnicodeDecodeError):
        return None
    return codec


class _Walk:
    """One pass over a parsed page, in document order and without recursion."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._gap = ""
        self._headings: list[Heading] = []
        self._open: list[tuple[int, int]] = []  # (level, index of its first part)

    def extract(self, root: PageElement) -> tuple[str, tuple[Heading, ...]]:
        from bs4.element import CData, NavigableString, Tag

        stack: list[tuple[PageElement, bool]] = [(root, False)]
        preformatted = 0
        while stack:
            node, leaving = stack.pop()
            if isinstance(node, Tag):
                if node.name in _HIDDEN:
                    continue
                preformatted += (node.name == "pre") * (-1 if leaving else 1)
                self._add_edge(node.name, leaving)
                if not leaving:
                    stack.append((node, True))
                    stack.extend((child, False) for child in reversed(node.contents))
            elif type(node) in (NavigableString, CData):
                self._add_text(str(node), preformatted > 0)
        return "".join(self._parts), tuple(self._headings)

    def _add_edge(self, tag: str, leaving: bool) -> None:
        if tag == "br":
            if leaving:
                self._widen("\n\n" if self._gap == "\n" else "\n")
        elif tag == "tr":
            self._widen("\n")
        elif tag in ("td", "th"):
            self._widen("\t")
        elif tag in _APART:
            self._widen("\n\n")
            if tag in _HEADINGS:
                self._mark_heading(_HEADINGS[tag], leaving)

    def _mark_heading(self, level: int, leaving: bool) -> None:
        if not leaving:
            self._open.append((level, len(self._parts)))
        elif self._open:
            level, first = self._open.pop()
            words = "".join(self._parts[first:])
            if words.strip():
                lead = len(words) - len(words.lstrip())
                start = self._length - len(words) + lead
                self._headings.append(Heading(start, level, words.strip()))

    def _widen(self, gap: str) -> None:
        """Owe white space before the next words: the widest that was asked for."""
        widths = ("", " ", "\t", "\n", "\n\n")
        self._gap = max(self._gap, gap, key=widths.index)

    def _add_text(self, words: str, preformatted: bool) -> None:
        spaced = words if preformatted else _SPACES.sub(" ", words)
        words = spaced if preformatted else spaced.strip(" ")
        if not preformatted and spaced.startswith(" "):
            self._widen(" ")
        if not words:
            return
        if self._length:
            words = self._gap + words
        self._gap = " " if not preformatted and spaced.endswith(" ") else ""
        self._parts.append(words)
        self._length += len(words)
