"""A Word file (.docx) to text: its paragraphs, tables, notes and headings, by mammoth.

Deleted text of tracked changes, comments, headers and footers are left out, and pictures. Nothing
is fetched, no entity is expanded, and what unpacks to far more than a file of its size is refused.
"""

from __future__ import annotations

import io
import zipfile
from typing import Final

from mgl.errors import InputError
from mgl.text.chapters import sections
from mgl.text.epub import DAMAGES, MAX_RATIO, MAX_UNPACKED_BYTES, SMALL_BYTES
from mgl.text.markup import extract
from mgl.types import Document

MEDIA_TYPE: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_MAIN: Final = "word/document.xml"
_STYLES: Final = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"
_AGAIN: Final = "it is damaged or protected: save it again as .docx, or as PDF"


def is_docx(data: bytes) -> bool:
    """Whether a zip archive is a Word file."""
    return _MAIN.encode() in data


def read_docx(data: bytes, name: str) -> Document:
    """Read a Word file. Raises InputError."""
    import mammoth

    try:
        left_out = _check(data, name)
        html = mammoth.convert_to_html(
            io.BytesIO(data), style_map=_STYLES, convert_image=lambda _: []
        ).value
    except InputError:
        raise
    except DAMAGES as error:
        raise InputError(f"{name} is not a complete Word file: {error}", hint=_AGAIN) from error
    except Exception as error:  # damaged input makes the parser raise almost anything
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InputError(f"{name} is not a complete Word file: {reason}", hint=_AGAIN) from error
    text, headings = extract(html)
    if not text:
        raise InputError(f"{name} holds no text", hint="a file of pictures needs OCR first")
    return Document.from_text(
        name,
        text,
        sections=sections(headings, len(text)),
        media_type=MEDIA_TYPE,
        notes=(f"not read: {', '.join(left_out)}",) if left_out else (),
    )


def _check(data: bytes, name: str) -> list[str]:
    """Refuse what unpacks to too much or declares entities; list the parts that are not read."""
    most = left = min(MAX_UNPACKED_BYTES, max(SMALL_BYTES, MAX_RATIO * len(data)))
    found: dict[str, None] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for member in archive.namelist():
            if not member.endswith((".xml", ".rels")):
                continue
            with archive.open(member) as file:
                part = file.read(left + 1)
            left -= len(part)
            if left < 0:
                raise InputError(
                    f"{name} unpacks to more than {most:,} bytes",
                    hint="it may be a zip bomb; a real file this large has to be split",
                )
            if b"<!DOCTYPE" in part.replace(b"\0", b""):
                raise InputError(
                    f"{name} declares XML entities in {member}, which are not expanded",
                    hint=_AGAIN,
                )
            for kind in ("header", "footer", "comments"):
                if member.startswith(f"word/{kind}") and b"<w:t" in part:
                    found[f"{kind}s".replace("ss", "s")] = None
    return [*found]
