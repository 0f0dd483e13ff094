"""PDF to text: the text layer, page by page.

A page's label is its number in the file, from 1. Pages are joined by one newline, because sentences
run on from page to page. What is filled in a form follows its page's text. The order of lines and
columns is pypdf's reading. Pictures are not read: a scan without a text layer is refused.

The reader counts the operators that are drawn, within forms too. It refuses a small file that shows
one page a thousand times (``MAX_DRAWN``).
"""

from __future__ import annotations

import io
import logging
import re
from typing import TYPE_CHECKING, Any, Final

from mgl.errors import InputError
from mgl.types import Document, Section

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

MAX_DRAWN: Final = 300_000
"""Operators that any file may draw, and again for each MB of it: a few seconds of work."""
MAX_CONTENT_BYTES: Final = 8_000_000
"""Unpacked bytes that a page's content may have."""
_DEEPEST_FIELD = 8
_PAGE_COST = 30  # operators that a page costs by itself
_DECRYPT = "remove the password, for instance: qpdf --decrypt --password=… IN OUT"
_MEND = "it is damaged or truncated: download it again, or repair it: qpdf IN OUT"
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


def read_pdf(data: bytes, name: str) -> Document:
    """Read a PDF's text layer. Raises InputError for a PDF without one."""
    from pypdf.errors import DependencyError

    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of faults that it works around
    try:
        reader = _open(data, name)
        pages, notes = _read_pages(reader, _Room(name, len(data)))
    except InputError:
        raise
    except DependencyError as error:  # AES, and the library has no AES of its own
        raise InputError(f"{name} is encrypted with AES", hint=_DECRYPT) from error
    except Exception as error:  # damaged input makes the parser raise almost anything
        raise InputError(f"{name} is not a complete PDF: {_reason(error)}", hint=_MEND) from error
    if not any(page.strip() for page in pages):
        if unread := [note for note in notes if "cannot be read" in note]:
            raise InputError(f"no text can be read from {name}: {unread[0]}", hint=_MEND)
        raise InputError(
            f"{name} has no text layer on any of its {len(pages)} pages: it is a scan, or empty",
            hint="recognise its text first, for instance: ocrmypdf in.pdf out.pdf",
        )
    return _document(name, pages, notes)


def _open(data: bytes, name: str) -> PdfReader:
    from pypdf import PasswordType, PdfReader

    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise InputError(f"{name} is encrypted", hint=_DECRYPT)
    return reader


class _Room:
    """Counts the operators drawn; raises InputError at more than a file of its size may draw."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._left = MAX_DRAWN * (1 + size // 1_000_000)

    def take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise InputError(
                f"{self._name} draws far more than a file of its size does",
                hint="it may be a trap; print it to a new PDF, or save its text",
            )

    def draw(self, *_: object) -> None:
        self.take(1)


def _read_pages(reader: PdfReader, room: _Room) -> tuple[list[str], list[str]]:
    """The text of each page, and notes on those that have none."""
    from pypdf.errors import DependencyError

    pages: list[str] = []
    notes: list[str] = []
    for number in range(1, len(reader.pages) + 1):
        try:
            room.take(_PAGE_COST)
            page = reader.pages[number - 1]
            if _count_content(page) > MAX_CONTENT_BYTES:
                raise ValueError(f"its content has more than {MAX_CONTENT_BYTES:,} bytes")
            text = page.extract_text(visitor_operand_before=room.draw)
            filled = "\n".join(_list_filled(page, room))
            text = "\n".join(filter(None, (text, filled)))
            room.take(0)  # pypdf passes over what is raised within a form
        except (DependencyError, InputError):
            raise
        except Exception as error:  # one bad page does not lose the others
            notes.append(f"page {number} cannot be read: {_reason(error)}")
            text = ""
        pages.append(_UNUSABLE.sub("\ufffd", text))
    blank = [str(number) for number, page in enumerate(pages, 1) if not page.strip()]
    if blank:
        notes.append(f"pages without text: {', '.join(blank[:9])}{', …' * (len(blank) > 9)}")
    return pages, notes


def _list_filled(page: PageObject, room: _Room) -> list[str]:
    """What is filled in the fields of a page, each after its name."""
    found: dict[str, None] = {}
    for annotation in page.get("/Annots") or ():
        room.take(_PAGE_COST)
        field = annotation.get_object()
        if field.get("/Subtype") != "/Widget":
            continue
        names: list[str] = []
        value: Any = None
        for _ in range(_DEEPEST_FIELD):
            if value is None and (given := field.get("/V")) is not None:
                value = given.get_object()
            if label := field.get("/TU") or field.get("/T"):
                names.insert(0, str(label))
            if field.get("/TU") or (parent := field.get("/Parent")) is None:
                break
            field = parent.get_object()
        values = value if isinstance(value, list) else [value]
        said = ", ".join(str(each).removeprefix("/").strip() for each in values if each is not None)
        if said and said != "Off":
            found[f"{'.'.join(names)}: {said}" if names else said] = None
    return [*found]


def _count_content(page: PageObject) -> int:
    contents = page.get("/Contents")
    found = None if contents is None else contents.get_object()
    streams = found if isinstance(found, list) else [] if found is None else [found]
    parts = (stream.get_object() for stream in streams)
    return sum(len(part.get_data()) for part in parts if hasattr(part, "get_data"))


def _document(name: str, pages: list[str], notes: list[str]) -> Document:
    sections: list[Section] = []
    position = 0
    for number, page in enumerate(pages, 1):
        end = position + len(page) + (number < len(pages))
        if end > position:
            sections.append(Section("page", str(number), position, end))
        position = end
    return Document.from_text(
        name,
        "\n".join(pages),
        sections=tuple(sections),
        media_type="application/pdf",
        notes=tuple(notes),
    )


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
