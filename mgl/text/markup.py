"""HTML to text: what a reader sees, block by block, with the headings as chapters.

    >>> read_html(b"<h1>Rain</h1><p>It <b>rained</b>.</p>", "a.html").text
    'Rain\\n\\nIt rained.'

Offsets are those of the extracted text. White space collapses as in a browser, except in ``pre``.
Scripts, styles and templates are left out; nothing is fetched or run. lxml (libxml2) parses in
linear time and closes what a page leaves open; only end tags that close nothing cost more the
deeper they stand, so a page may have only so many of them. The end tag of a paragraph that is
closed already is passed over, where a browser shows an empty one.
"""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from html import escape
from typing import Final

from mgl.errors import InputError
from mgl.text.chapters import Heading, sections
from mgl.text.encoding import Decoded, decode
from mgl.types import Document

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDDEN = frozenset(  # rt is said, not read
    "head title script style template noscript svg math iframe rp rt".split()
)
_OF_HEAD = frozenset(
    "base basefont bgsound link meta title style script noscript template noframes".split()
)
_OF_RUBY = frozenset("rb rt rtc rp".split())
_APART = frozenset(_HEADINGS) | {
    "p", "div", "section", "article", "main", "header", "footer", "aside", "nav", "blockquote",
    "ul", "ol", "dl", "dt", "dd", "li", "table", "figure", "figcaption", "pre", "form",
    "fieldset", "address", "hr", "body", "details", "summary", "legend", "caption", "option",
    "button",
}  # fmt: skip
_AFTER_RUBY = _OF_RUBY | _APART | {"tr", "td", "th"}
"""The elements that end a gloss whose end tag is left out."""
_WIDTHS = ("", " ", "\t", "\n", "\n\n")
MAX_UNMATCHED: Final = 2_000_000_000
"""Open elements times end tags in a page, for each MB of it: each end tag is looked for in all."""
_PIECE_BYTES = 1 << 14
_OPEN_HEADINGS = 16  # at a time, one inside another; what was opened before them is no heading
_SPACES = re.compile(r"[ \t\r\n\f]+")
_CDATA: Final = "<![CDATA["
_TYPE = re.compile("<!DOCTYPE", re.IGNORECASE)
_SUBSET = re.compile(r"<!DOCTYPE[^>\[]{0,500}\[[^\]]*\]\s*>", re.IGNORECASE)
"""A declaration with entities, whose end lxml takes for text."""
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?\s*([A-Za-z0-9_.:-]+)""", re.IGNORECASE)


def read_html(data: bytes, name: str) -> Document:
    """Read an HTML page; its headings give its sections."""
    decoded = decode_page(data, name)
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
    """Extract the visible text of an HTML or XHTML source, and its headings.

    Raises InputError for elements nested so deep that its end tags would take long to match.
    """
    from lxml.etree import HTMLParser, XMLSyntaxError

    source = _unwrap(source)
    page = _Page(source)
    parser = HTMLParser(target=page, encoding="utf-8", huge_tree=True)
    data = source.encode("utf-8", "replace")
    with suppress(XMLSyntaxError):  # there is no element at all
        for start in range(0, len(data), _PIECE_BYTES):  # an error stops it only after a piece
            parser.feed(data[start : start + _PIECE_BYTES])
        parser.close()
    return "".join(page.parts), tuple(page.headings)


def _unwrap(source: str) -> str:
    """The source without what lxml takes for text or passes over: the entities that its type
    declares, and the marks around CDATA, whose text is read."""
    if (kind := _TYPE.search(source)) and (subset := _SUBSET.match(source, kind.start())):
        source = source[: subset.start()] + source[subset.end() :]
    parts, at = [], 0
    while (start := source.find(_CDATA, at)) >= 0:
        if (end := source.find("]]>", start)) < 0:
            break
        parts += [source[at:start], escape(source[start + len(_CDATA) : end])]
        at = end + 3
    return "".join([*parts, source[at:]])


def decode_page(data: bytes, name: str) -> Decoded:
    """Decode a page, by the encoding that it declares where it is not UTF-8."""
    encoding, declared = None, _DECLARED.search(data[:2048])
    if declared and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
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
    except (LookupError, UnicodeError):  # Python's "undefined" decodes nothing
        return None
    return codec


class _Page:
    """Collects what a page shows, from the parser's events: each start has its end."""

    def __init__(self, source: str) -> None:
        self.parts: list[str] = []
        self.headings: list[Heading] = []
        self._length = 0
        self._gap = ""
        self._open: list[tuple[int, int]] = []  # of headings: level, index of its first part
        self._preformatted = 0
        self._hidden: list[str] = []  # the element that hides what is read, and those in it
        ends = max(1, source.count("</"))
        self._room = MAX_UNMATCHED * max(1, len(source) >> 20) // ends  # for open elements

    def start(self, tag: str, attributes: object) -> None:
        del attributes
        self._room -= 1
        if self._room < 0:
            raise InputError(
                "too many elements are open at once, for a page with so many end tags",
                hint="save the page from a browser as text or PDF",
            )
        if self._ends_hidden(tag):
            self._hidden.clear()
        if self._hidden or tag in _HIDDEN:
            self._hidden.append(tag)
            return
        self._preformatted += tag == "pre"
        if tag == "br":
            self._widen("\n\n" if self._gap == "\n" else "\n")
        self._add_edge(tag)
        if tag in _HEADINGS:
            self._open.append((_HEADINGS[tag], len(self.parts)))
            del self._open[:-_OPEN_HEADINGS]

    def end(self, tag: str) -> None:
        self._room += 1
        if self._hidden:
            self._hidden.pop()
            return
        self._preformatted -= tag == "pre"
        self._add_edge(tag)
        if tag in _HEADINGS and self._open:
            self._close_heading()

    def data(self, data: str) -> None:
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

    def close(self) -> None:
        """End the page, as the parser requires."""

    def _ends_hidden(self, tag: str) -> bool:
        """Whether an element implies the end of one that hides, and whose end tag is left out."""
        if self._hidden == ["head"]:
            return tag not in _OF_HEAD
        return bool(self._hidden) and self._hidden[0] in ("rt", "rp") and tag in _AFTER_RUBY

    def _close_heading(self) -> None:
        level, first = self._open.pop()
        words = "".join(self.parts[first:])
        if words.strip():
            lead = len(words) - len(words.lstrip())
            self.headings.append(Heading(self._length - len(words) + lead, level, words.strip()))

    def _add_edge(self, tag: str) -> None:
        if tag == "tr":
            self._widen("\n")
        elif tag in ("td", "th"):
            self._widen("\t")
        elif tag in _APART:
            self._widen("\n\n")

    def _widen(self, gap: str) -> None:
        """Owe white space before the next words: the widest that was asked for."""
        self._gap = max(self._gap, gap, key=_WIDTHS.index)
