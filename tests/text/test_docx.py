from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from mgl.errors import InputError
from mgl.text import docx, read_document

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def paragraph(text: str, style: str = "") -> str:
    about = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{about}<w:r><w:t>{text}</w:t></w:r></w:p>"


BODY = (
    paragraph("I. Rain", "Heading1")
    + paragraph("Ann &amp; Bo moved.")
    + "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:t>kept</w:t></w:r></w:p>"
    + "<w:tbl><w:tr>"
    + "".join(f"<w:tc>{paragraph(cell)}</w:tc>" for cell in ("boat", "Ada"))
    + "</w:tr></w:tbl>"
    + paragraph("II. Sun", "Heading1")
    + paragraph("It stopped.")
)


def word(body: str = BODY, **extra: str) -> bytes:
    """A Word file; ``extra`` are further parts of ``word/``."""
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    style = '<w:style w:type="paragraph" w:styleId="Heading1"><w:name w:val="heading 1"/></w:style>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{kind}.document.main+xml"/>'
        f'<Override PartName="/word/styles.xml" ContentType="{kind}.styles+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">'
        f'<Relationship Id="r1" Type="{OFFICE}/styles" Target="styles.xml"/></Relationships>',
        "word/styles.xml": f'<w:styles xmlns:w="{W}">{style}</w:styles>',
        "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
        **{f"word/{name}.xml": text for name, text in extra.items()},
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return out.getvalue()


@pytest.mark.parametrize("name", ["a.docx", "a.bin"])
def test_a_word_file(save: Any, name: str) -> None:
    document = read_document(save(name, word(header1="<w:hdr><w:t>Draft</w:t></w:hdr>")))
    said = document.text.split("\n\n")
    assert said[:3] == ["I. Rain", "Ann & Bo moved.", "kept"]
    assert said[-2:] == ["II. Sun", "It stopped."]
    assert "boat" in document.text
    assert [section.label for section in document.sections] == ["I. Rain", "II. Sun"]
    assert document.notes[-1] == "not read: headers"
    assert document.media_type == docx.MEDIA_TYPE


@pytest.mark.parametrize(
    "data",
    [
        word()[:-200],
        word(paragraph(" ")),
        word("<w:p>"),
        word(header1="<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>"),
        word(header1="a" * 20_000_000),
    ],
    ids=["cut", "empty", "broken", "entities", "bomb"],
)
def test_damaged_files(save: Any, data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        read_document(save("a.docx", data))
    assert caught.value.hint
