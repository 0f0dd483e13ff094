"""Small real files, made when they are needed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Save = Callable[[str, bytes | str], Path]
MakePdf = Callable[[Sequence[str]], bytes]
MakeEpub = Callable[..., bytes]

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Writes a file (text as UTF-8, newlines untouched) and gives its path."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def make_pdf() -> MakePdf:
    """A PDF with one page for each text; a page with an empty text shows nothing."""
    return pdf_bytes


@pytest.fixture
def make_epub() -> MakeEpub:
    """An EPUB of XHTML bodies by file name, in that order; ``extra`` adds or replaces members."""
    return epub_bytes


def pdf_bytes(pages: Sequence[str]) -> bytes:
    font = 3
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        font: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    }
    kids = []
    for index, text in enumerate(pages):
        page, content = 4 + 2 * index, 5 + 2 * index
        kids.append(f"{page} 0 R")
        shown = " T* ".join(f"({line}) Tj" for line in text.splitlines())
        stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET".encode("latin-1") if text else b""
        objects[content] = b"<< /Length %d >>\nstream\n%b\nendstream" % (len(stream), stream)
        objects[page] = (
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {content} 0 R "
            f"/Resources << /Font << /F1 {font} 0 R >> >> >>"
        ).encode()
    objects[2] = f"<< /Type /Pages /Count {len(kids)} /Kids [{' '.join(kids)}] >>".encode()
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, io.SEEK_END)
    offsets = {}
    for number in sorted(objects):
        offsets[number] = out.tell()
        out.write(b"%d 0 obj\n%b\nendobj\n" % (number, objects[number]))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    for number in sorted(objects):
        out.write(b"%010d 00000 n \n" % offsets[number])
    out.write(b"trailer << /Size %d /Root 1 0 R >>\n" % (len(objects) + 1))
    out.write(b"startxref\n%d\n%%%%EOF\n" % table)
    return out.getvalue()


def epub_bytes(
    pages: dict[str, str],
    *,
    contents: dict[str, str] | None = None,
    extra: dict[str, bytes] | None = None,
) -> bytes:
    """``contents`` are entries of an NCX table of contents: page to title."""
    items = "".join(
        f'<item id="p{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(pages)
    )
    spine = "".join(f'<itemref idref="p{n}"/>' for n in range(len(pages)))
    if contents:
        items += '<item id="toc" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf" version="2.0">'
        f"<manifest>{items}</manifest><spine>{spine}</spine></package>"
    )
    points = "".join(
        f"<navPoint><navLabel><text>{title}</text></navLabel><content src='{page}#top'/></navPoint>"
        for page, title in (contents or {}).items()
    )
    members = {
        "mimetype": b"application/epub+zip",
        "META-INF/container.xml": CONTAINER.encode(),
        "OEBPS/book.opf": package.encode(),
        "OEBPS/toc.ncx": f"<ncx><navMap>{points}</navMap></ncx>".encode(),
        **{
            f"OEBPS/{name}": f"<html><head><title>x</title></head>{body}</html>".encode()
            for name, body in pages.items()
        },
        **(extra or {}),
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()
