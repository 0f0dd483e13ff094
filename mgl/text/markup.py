"""HTML to text: what a reader sees, block by block, with the headings as chapters.

    >>> read_html(b"<h1>Rain</h1><p>It <b>rained</b>.</p>", "a.html", None).text
    'Rain\\n\\nIt rained.'

Offsets are those of the extracted text. White space collapses as in a browser, except in ``pre``.
Scripts, styles and templates are left out; nothing is fetched or run.
"""

from __future__ import annotations

import codecs
import re
from html.parser import HTMLParser

from mgl.errors import InputError
from mgl.text.chapters import Heading, sections
from mgl.text.encoding import Decoded, decode
from mgl.types import Document

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = frozenset(
    "head script style template noscript svg math iframe rp rt".split()  # rt is said, not read
)
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
    text, headings = extract(decoded.text)
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


def extract(source: str) -> tuple[str, tuple[Heading, ...]]:
    """Extract the visible text of an HTML or XHTML source, and its headings."""
    page = _Page()
    page.feed(source)
    page.close()
    return "".join(page.parts), tuple(page.headings)


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


class _Page(HTMLParser):
    """Collects what a page shows, tag by tag."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.headings: list[Heading] = []
        self._length = 0
        self._gap = ""
        self._open: list[tuple[int, int]] = []  # of headings: level, index of its first part
        self._preformatted = 0
        self._hidden: list[str] = []  # the element that hides what is read, once for each level

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if self._hidden or tag in _HIDDEN:
            if tag == (self._hidden or [tag])[0]:
                self._hidden.append(tag)
            return
        self._preformatted += tag == "pre"
        if tag == "br":
            self._widen("\n\n" if self._gap == "\n" else "\n")
        self._add_edge(tag)
        if tag in _HEADINGS:
            self._open.append((_HEADINGS[tag], len(self.parts)))

    def handle_endtag(self, tag: str) -> None:
        if self._hidden:
            if tag == self._hidden[0]:
                self._hidden.pop()
            return
        self._preformatted -= tag == "pre" and self._preformatted > 0
        self._add_edge(tag)
        if tag in _HEADINGS and self._open:
            level, first = self._open.pop()
            words = "".join(self.parts[first:])
            if words.strip():
                lead = len(words) - len(words.lstrip())
                start = self._length - len(words) + lead
                self.headings.append(Heading(start, level, words.strip()))

    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        preformatted = self._preformatted > 0
        spaced = data if preformatted else _SPACES.sub(" ", data)
        words = spaced if preformatted else spaced.strip(" ")
        if not preformatted and spaced.startswith(" "):
            self._widen(" ")
        if not words:
            return
        if self._length:
            words = self._gap + words
        self._gap = " " if not preformatted and spaced.endswith(" ") else ""
        self.parts.append(words)
        self._length += len(words)

    def _add_edge(self, tag: str) -> None:
        if tag == "tr":
            self._widen("\n")
        elif tag in ("td", "th"):
            self._widen("\t")
        elif tag in _APART:
            self._widen("\n\n")

    def _widen(self, gap: str) -> None:
        """Owe white space before the next words: the widest that was asked for."""
        widths = ("", " ", "\t", "\n", "\n\n")
        self._gap = max(self._gap, gap, key=widths.index)
