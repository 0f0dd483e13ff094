"""EPUB to text: the pages of the spine in reading order, with their chapters.

``META-INF/container.xml`` names a package file, which lists the pages and their order; a table of
contents (EPUB 3 ``nav`` or EPUB 2 ``ncx``) names chapters. Every character belongs to a chapter: a
page without a heading takes its entry in the table of contents, else "page file N". A page that is
listed again is read once. A name is found whose case or escapes differ, or that begins with ``/``;
a bare ``&`` stands for itself. Each part that is not read has a note.

Nothing is unpacked to disk, no entity is expanded, and protected books are refused. A book unpacks
to at most ``MAX_UNPACKED_BYTES``, and to ``MAX_RATIO`` times its own size: pages of real books
compress to between a third and a tenth.
"""

from __future__ import annotations

import io
import lzma
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from html import unescape
from typing import TYPE_CHECKING, Final
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from mgl.errors import InputError
from mgl.text.chapters import Heading, sections
from mgl.text.markup import decode_page, extract
from mgl.types import Document

if TYPE_CHECKING:
    from lxml.etree import _Element

MAX_UNPACKED_BYTES: Final = 128 * 1024 * 1024
MAX_RATIO: Final = 50
SMALL_BYTES: Final = 1024 * 1024
"""What any book may unpack to, however small it is."""
_AGAIN = "it is damaged or truncated: download it again"
_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")
_NAMED = re.compile(rb"&([a-zA-Z][a-zA-Z0-9]{1,31});")
_XML_NAMES = frozenset((b"amp", b"lt", b"gt", b"quot", b"apos"))
_PAGES = (
    "application/xhtml+xml", "text/html", "application/x-dtbook+xml", "text/x-oeb1-document",
    "application/xml", "text/xml",
)  # fmt: skip
_TYPE = "{http://www.idpf.org/2007/ops}type"
DAMAGES = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError,
    NotImplementedError,
)  # fmt: skip


def is_epub(data: bytes) -> bool:
    """Whether a zip archive declares itself an EPUB."""
    return b"application/epub+zip" in data[:128] or b"META-INF/container.xml" in data


def read_epub(data: bytes, name: str) -> Document:
    """Read a book in reading order. Raises InputError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return _Book(archive, name, len(data)).document()
    except DAMAGES as error:
        raise InputError(f"{name} is not a complete EPUB: {error}", hint=_AGAIN) from error


class _Book:
    def __init__(self, archive: zipfile.ZipFile, name: str, size: int) -> None:
        self._archive = archive
        self._name = name
        self._left = self._most = min(MAX_UNPACKED_BYTES, max(SMALL_BYTES, MAX_RATIO * size))
        self._names = frozenset(archive.namelist())
        self._by_form = {_fold(name): name for name in archive.namelist()}
        self._notes: list[str] = []

    def document(self) -> Document:
        pages = self._read_spine()
        self._refuse_protected({path for path, _ in pages})
        parts: list[str] = []
        headings: list[Heading] = []
        length = 0
        for number, (path, title) in enumerate(pages, 1):
            text, found = self._read_page(path, title or f"page file {number}")
            if text:
                gap = "\n\n" if parts else ""
                headings += [
                    Heading(length + (len(gap) + h.start if h.start else 0), h.level, h.label)
                    for h in found
                ]
                parts.append(gap + text)
                length += len(gap) + len(text)
        if not parts:
            raise InputError(
                f"{self._name} holds no text", hint="a book of pictures only needs OCR first"
            )
        return Document.from_text(
            self._name,
            "".join(parts),
            sections=sections(headings, length),
            media_type="application/epub+zip",
            notes=tuple(self._notes),
        )

    def _read_page(self, path: str, title: str) -> tuple[str, tuple[Heading, ...]]:
        """Read a page's text and headings, the first of them at its beginning."""
        if path not in self._names:
            self._notes.append(f"page missing from the archive: {path}")
            return "", ()
        decoded = decode_page(self._unpack(path), path)
        self._notes += [f"{path}: {note}" for note in decoded.notes]
        text, headings = extract(decoded.text)
        if headings and headings[0].start == 0:
            return text, headings
        level = min((heading.level for heading in headings), default=1)
        return text, (Heading(0, level, title), *headings)

    def _read_spine(self) -> list[tuple[str, str | None]]:
        """The paths of the pages in reading order, with the titles that some have."""
        container = self._parse_xml("META-INF/container.xml")
        rootfile = next(_find_elements(container, "rootfile"), None)
        package = self._find("", rootfile.get("full-path", "")) if rootfile is not None else ""
        if package not in self._names:
            raise InputError(f"{self._name} names no package file", hint=_AGAIN)
        tree = self._parse_xml(package)
        items = {item.get("id", ""): item for item in _find_elements(tree, "item")}
        titles = self._read_titles(package, list(items.values()))
        pages: dict[str, str | None] = {}
        again = 0
        for reference in _find_elements(tree, "itemref"):
            identity = reference.get("idref", "")
            item = items.get(identity)
            if item is None:
                self._notes.append(f"page not in the book's list: {identity}")
                continue
            path = self._find(package, item.get("href", ""))
            kind = item.get("media-type", _PAGES[0]).partition(";")[0].strip().lower()
            if kind not in _PAGES:
                self._notes.append(f"page not read: {path} ({kind})")
                continue
            again += path in pages
            pages[path] = titles.get(path)
        if not pages:
            raise InputError(f"{self._name} lists no pages to read", hint=_AGAIN)
        if again:
            self._notes.append(f"pages listed again, read once: {again:,}")
        return list(pages.items())

    def _find(self, base: str, href: str) -> str:
        """Resolve a link to a member of the archive: as it is written, else one whose name differs
        in case or escapes; a path from the root is also looked for beside ``base``."""
        given = urlsplit(href.replace("\\", "/")).path
        places = [_resolve(base, given), _resolve(base, given.lstrip("/"))]
        if given.startswith("/"):
            places.insert(0, _resolve("", given.lstrip("/")))
        for path in (each for place in places for each in (unquote(place), place)):
            if path in self._names:
                return path
            if (other := self._by_form.get(_fold(path))) is not None:
                return other
        return unquote(places[0])

    def _read_titles(self, package: str, items: list[_Element]) -> dict[str, str]:
        """Read each page's title: its first entry in the table of contents."""
        titles: dict[str, str] = {}
        for item in items:
            path = self._find(package, item.get("href", ""))
            is_nav = "nav" in item.get("properties", "").split()
            is_ncx = item.get("media-type", "").lower() == "application/x-dtbncx+xml"
            if path not in self._names or not (is_nav or is_ncx):
                continue
            try:
                tree = self._parse_xml(path)
            except InputError as error:
                self._notes.append(f"table of contents left out: {error.message}")
                continue
            for target, words in _nav_entries(tree) if is_nav else _ncx_entries(tree):
                if words:
                    titles.setdefault(self._find(path, target), words)
        return titles

    def _refuse_protected(self, paths: set[str]) -> None:
        if "META-INF/encryption.xml" not in self._names:
            return
        tree = self._parse_xml("META-INF/encryption.xml")
        encrypted = {
            self._find("", e.get("URI", "")) for e in _find_elements(tree, "CipherReference")
        }
        if encrypted & paths:  # in other books it is the fonts
            raise InputError(
                f"{self._name} is protected: its pages are encrypted",
                hint="use a copy without copy protection",
            )

    def _parse_xml(self, path: str) -> _Element:
        from lxml.etree import XMLParser, XMLSyntaxError, fromstring

        data = self._unpack(path)
        if b"<!ENTITY" in data.replace(b"\0", b""):
            raise InputError(
                f"{self._name} declares XML entities in {path}, which are not expanded",
                hint="convert the book to plain EPUB again",
            )
        parser = XMLParser(resolve_entities=False, no_network=True)
        try:
            return fromstring(data, parser)
        except XMLSyntaxError as error:
            try:
                mended = _BARE_AMPERSAND.sub(b"&amp;", _NAMED.sub(_expand_named, data))
                return fromstring(mended, parser)
            except XMLSyntaxError:
                raise InputError(
                    f"{path} in {self._name} is damaged: {error}", hint=_AGAIN
                ) from error

    def _unpack(self, path: str) -> bytes:
        """Read one member, within what is left of the book's size limit."""
        try:
            with self._archive.open(path) as member:
                data = member.read(self._left + 1)
        except KeyError as error:
            raise InputError(f"{self._name} holds no {path}", hint=_AGAIN) from error
        except RuntimeError as error:  # the zip archive itself is encrypted
            raise InputError(
                f"{self._name} is encrypted", hint="use a copy without a password"
            ) from error
        if len(data) > self._left:
            raise InputError(
                f"{self._name} unpacks to more than {self._most:,} bytes of pages",
                hint="it may be a zip bomb; a real book this large has to be split",
            )
        self._left -= len(data)
        return data


def _find_elements(tree: _Element, name: str) -> Iterator[_Element]:
    """Yield the elements of a local name, in any namespace."""
    yield from tree.iter(f"{{*}}{name}")


def _nav_entries(tree: _Element) -> Iterator[tuple[str, str]]:
    """The entries of the table of contents, without those of lists of pages and landmarks."""
    navs = [*_find_elements(tree, "nav")] or [tree]
    chosen = [nav for nav in navs if "toc" in nav.get(_TYPE, "").split()]
    chosen = chosen or [nav for nav in navs if nav.get(_TYPE) is None]
    for nav in chosen:
        for link in _find_elements(nav, "a"):
            yield link.get("href", ""), _join_words(link)


def _ncx_entries(tree: _Element) -> Iterator[tuple[str, str]]:
    for point in _find_elements(tree, "navPoint"):
        content, label = point.find("{*}content"), point.find("{*}navLabel")
        if content is not None and label is not None:
            yield content.get("src", ""), _join_words(label)


def _join_words(element: _Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _resolve(base: str, path: str) -> str:
    """Resolve a path of a link to one inside the archive."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), path)) if path else base


def _fold(name: str) -> str:
    """A name without what differs between one and the link to it: case, escapes, accents."""
    return normalize("NFC", unquote(name).replace("\\", "/")).casefold().lstrip("/")


def _expand_named(name: re.Match[bytes]) -> bytes:
    """A character that HTML names, by its number; XML's own names stay."""
    said = unescape(name[0].decode("ascii"))
    is_known = name[1] not in _XML_NAMES and not said.startswith("&")
    return b"".join(b"&#%d;" % ord(each) for each in said) if is_known else name[0]
