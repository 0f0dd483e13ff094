from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from mgl.errors import InputError
from mgl.text import pdf, read_document
from tests.effort import within_cpu_seconds

if TYPE_CHECKING:
    from pypdf import PageObject

PAGES = ["It rained all day and", "all night. Then", "it stopped."]


def encrypted(data: bytes, user: str, algorithm: str) -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user, "owner", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_pages_are_sections_that_hold_every_character(save, make_pdf) -> None:
    document = read_document(save("a.pdf", make_pdf(PAGES)))
    assert document.text == "\n".join(PAGES)
    assert [(s.kind, s.label) for s in document.sections] == [
        ("page", "1"),
        ("page", "2"),
        ("page", "3"),
    ]
    for position, section in enumerate(PAGES):
        found = document.section_at(document.text.index(section))
        assert found is not None
        assert found.label == str(position + 1)
    assert document.section_at(len(document.text) - 1) == document.sections[-1]
    assert document.notes == ()


def test_pages_without_text_are_noted(save, make_pdf) -> None:
    document = read_document(save("a.pdf", make_pdf(["", "", "It rained.", "", "It stopped.", ""])))
    assert "pages without text: 1, 2, 4, 6" in document.notes
    section = document.section_at(document.text.index("stopped"))
    assert section is not None
    assert section.label == "5"


def test_a_file_without_one_readable_page_is_not_called_a_scan(
    save, make_pdf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pypdf import PageObject

    def break_down(*_: object) -> str:
        raise KeyError("/Font")

    monkeypatch.setattr(PageObject, "extract_text", break_down)
    with pytest.raises(InputError) as caught:
        read_document(save("a.pdf", make_pdf(PAGES)))
    assert "damaged" in caught.value.hint


@pytest.mark.parametrize("kind", ["scan", "password", "AES", "head"])
def test_what_cannot_be_read(save, make_pdf, kind: str) -> None:
    keys = f"/O <{'00' * 48}> /U <{'00' * 48}> /OE <{'00' * 32}> /UE <{'00' * 32}>"
    aes = f"/Filter /Standard /V 5 /R 6 /Length 256 /P -4 {keys} /Perms <{'00' * 16}>"
    crypt = "/CF << /StdCF << /CFM /AESV3 >> >> /StmF /StdCF /StrF /StdCF"
    trailer = f"/Root 1 0 R /ID [<00> <00>] /Encrypt << {aes} {crypt} >>".encode()
    data = {
        "scan": make_pdf(["", ""]),
        "password": encrypted(make_pdf(PAGES), "secret", "RC4-128"),
        "AES": make_pdf(PAGES).replace(b"/Root 1 0 R", trailer),
        "head": b"%PDF-1.7\n" + bytes(range(256)),
    }[kind]
    with pytest.raises(InputError):
        read_document(save("a.pdf", data))


def test_an_empty_password_does_not_keep_a_reader_out(save, make_pdf) -> None:
    document = read_document(save("a.pdf", encrypted(make_pdf(PAGES), "", "RC4-128")))
    assert document.text == "\n".join(PAGES)


def test_damaged_files_are_read_or_refused_but_never_break(save, make_pdf) -> None:
    data = make_pdf(PAGES)
    refused = 0
    for length in range(6, len(data), 61):
        try:
            read_document(save("a.pdf", data[:length]))
        except InputError:
            refused += 1
    assert refused


def test_what_the_library_worked_around_is_not_printed(
    save, make_pdf, capfd: pytest.CaptureFixture[str]
) -> None:
    data = make_pdf(PAGES).replace(b"startxref\n", b"startxref\n9")
    assert read_document(save("a.pdf", data)).text == "\n".join(PAGES)
    assert capfd.readouterr().err == ""


def test_one_bad_page_does_not_lose_the_others(
    save, make_pdf, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pypdf import PageObject

    real = PageObject.extract_text

    def faulty(self: PageObject, *_: object, **__: object) -> str:
        text = real(self)
        if "night" in text:
            raise KeyError("/Font")
        return text + "\0\ud800"

    monkeypatch.setattr(PageObject, "extract_text", faulty)
    document = read_document(save("a.pdf", make_pdf(PAGES)))
    assert document.text == f"{PAGES[0]}\ufffd\ufffd\n\n{PAGES[2]}\ufffd\ufffd"
    assert any("page 2 cannot be read" in note for note in document.notes)


def packed(data: bytes, *, times: int = 1) -> bytes:
    """The file with its contents compressed, which shows its first page so many times."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import NameObject, NumberObject

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.pages[0].compress_content_streams(level=9)
    pages = writer.root_object["/Pages"].get_object()
    pages["/Kids"].extend(pages["/Kids"][:1] * (times - 1))
    pages[NameObject("/Count")] = NumberObject(len(pages["/Kids"]))
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_page_that_is_shown_a_thousand_times_is_refused(
    save, make_pdf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "MAX_DRAWN", pdf.MAX_DRAWN // 100)
    data = packed(make_pdf(["It rained.\n" * 400]), times=1000)
    assert len(data) < 60_000
    with within_cpu_seconds(5), pytest.raises(InputError, match="draws far more"):
        read_document(save("a.pdf", data))


def test_a_page_that_unpacks_to_far_more_is_passed_over(save, make_pdf) -> None:
    data = packed(make_pdf(["It rained.\n" * 500_000]))
    with within_cpu_seconds(15), pytest.raises(InputError, match="no text can be read") as caught:
        read_document(save("a.pdf", data))
    assert "8,000,000 bytes" in caught.value.message


def test_a_large_page_is_read(save, make_pdf) -> None:
    data = packed(make_pdf(["It rained.\n" * 2000]))
    assert read_document(save("a.pdf", data)).text.count("It rained.") == 2000


def test_what_is_filled_in_a_form(save, make_pdf) -> None:
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, DictionaryObject, NameObject, TextStringObject

    def field(name: str, value: object, **more: str) -> DictionaryObject:
        made = {"/Subtype": NameObject("/Widget"), "/T": TextStringObject(name), "/V": value}
        made |= {f"/{key}": TextStringObject(text) for key, text in more.items()}
        return DictionaryObject({NameObject(key): each for key, each in made.items()})

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(make_pdf(["Name of the boat", "Page two"]))))
    boat = field("boat", TextStringObject("Ada"), TU="Name of the boat")
    fields = [
        boat,
        boat,
        field("sails", NameObject("/Yes")),
        field("oars", NameObject("/Off")),
        field("ports", ArrayObject([TextStringObject("Lisbon"), TextStringObject("Porto")])),
    ]
    writer.pages[0][NameObject("/Annots")] = ArrayObject(map(writer._add_object, fields))
    out = io.BytesIO()
    writer.write(out)
    document = read_document(save("form.pdf", out.getvalue()))
    assert document.text.splitlines() == [
        "Name of the boat",
        "Name of the boat: Ada",
        "sails: Yes",
        "ports: Lisbon, Porto",
        "Page two",
    ]
