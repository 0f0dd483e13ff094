from __future__ import annotations

import contextlib

import pytest

from mgl.errors import InputError
from mgl.text import epub, read_document
from tests.effort import within_cpu_seconds

PAGES = {
    "one.xhtml": "<h2>I. Rain</h2><p>It rained.</p>",
    "sub/two%20b.xhtml": "<p>It stopped.</p>",
    "three.xhtml": "<p>Then</p><h2>III. Snow</h2><p>it snowed.</p>",
}


def book(make_epub, **changes: object) -> bytes:
    pages = {name.replace("%20", " "): body for name, body in PAGES.items()}
    return make_epub(pages, **changes)


def test_every_character_has_a_chapter(save, make_epub) -> None:
    contents = {"sub/two%20b.xhtml": "II. Sun"}
    document = read_document(save("a.epub", book(make_epub, contents=contents)))
    assert [s.label for s in document.sections] == [
        "I. Rain",
        "II. Sun",
        "page file 3",
        "III. Snow",
    ]
    assert document.text == (
        "I. Rain\n\nIt rained.\n\nIt stopped.\n\nThen\n\nIII. Snow\n\nit snowed."
    )
    assert document.media_type == "application/epub+zip"
    assert document.notes == ()
    assert document.sections[0].start == 0
    assert document.sections[-1].end == len(document.text)
    for before, after in zip(document.sections, document.sections[1:], strict=False):
        assert before.end == after.start


def test_what_is_missing_or_broken_is_noted(save, make_epub) -> None:
    extra = {"OEBPS/toc.ncx": b"<ncx>", "OEBPS/three.xhtml": b""}
    data = book(make_epub, contents={"one.xhtml": "x"}, extra=extra)
    data = data.replace(b"OEBPS/three.xhtml", b"OEBPS/thref.xhtml")
    document = read_document(save("a.epub", data))
    assert "table of contents left out" in document.notes[0]
    assert "three.xhtml" in document.notes[1]


def test_a_bare_ampersand_in_a_package(save, make_epub) -> None:
    package = (
        "<package><metadata><title>Ann & Bo &amp; AT&T</title></metadata><manifest>"
        '<item id="p" href="one.xhtml"/></manifest><spine><itemref idref="p"/></spine></package>'
    )
    extra = {"OEBPS/book.opf": package.encode()}
    data = make_epub({"one.xhtml": "<p>It rained.</p>"}, extra=extra)
    assert read_document(save("a.epub", data)).text == "It rained."


@pytest.mark.parametrize(
    "extra",
    [
        {"META-INF/container.xml": b"<container>"},
        {"META-INF/container.xml": b"<container/>"},
        {"OEBPS/book.opf": b"<package/>"},
        {"OEBPS/book.opf": b"<!DOCTYPE p [<!ENTITY a 'b'>]><package>&a;</package>"},
        {f"OEBPS/{name.replace('%20', ' ')}": b"<img src='a.png'/>" for name in PAGES},
    ],
)
def test_damaged_books(save, make_epub, extra: dict[str, bytes]) -> None:
    with pytest.raises(InputError) as caught:
        read_document(save("a.epub", book(make_epub, extra=extra)))
    assert caught.value.hint


def test_flipped_bytes_never_escape_as_another_error(save, make_epub) -> None:
    data = book(make_epub)
    read = 0
    for position in range(0, len(data), 13):
        damaged = data[:position] + bytes([data[position] ^ 0xFF]) + data[position + 1 :]
        with contextlib.suppress(InputError):
            read += bool(read_document(save("a.epub", damaged)).text)
    assert read < len(data) // 13


def test_a_book_that_unpacks_to_too_much(save, make_epub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epub, "MAX_UNPACKED_BYTES", 1_000_000)
    data = make_epub({"one.xhtml": "<p>" + "a" * 2_000_000})
    assert len(data) < 10_000
    with pytest.raises(InputError):
        read_document(save("a.epub", data))


def test_a_small_file_that_unpacks_to_a_long_text(save, make_epub) -> None:
    data = make_epub({f"{n}.xhtml": "<p>" + "It rained. " * 500_000 for n in range(4)})
    assert len(data) < 256 * 1024
    with pytest.raises(InputError) as caught:
        read_document(save("a.epub", data))
    assert "unpacks" in caught.value.message


def test_a_small_book_of_repetitions(save, make_epub) -> None:
    data = make_epub({"one.xhtml": "<p>It rained.</p>" * 50_000})
    assert len(read_document(save("a.epub", data)).text) > 500_000


@pytest.mark.parametrize(
    "contents",
    [
        "<a href='one.xhtml'>" * 50_000 + "x" + "</a>" * 50_000,
        "<navPoint>" * 50_000 + "</navPoint>" * 50_000,
    ],
)
def test_a_table_of_contents_cannot_take_long(save, make_epub, contents: str) -> None:
    toc = f"<ncx>{contents}</ncx>".encode()
    package = (
        '<package><manifest><item id="a" href="one.xhtml"/><item id="t" href="toc.ncx" '
        'properties="nav"/><item id="u" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        '</manifest><spine><itemref idref="a"/></spine></package>'
    )
    extra = {"OEBPS/book.opf": package.encode(), "OEBPS/toc.ncx": toc}
    data = make_epub({"one.xhtml": "<p>It rained.</p>"}, extra=extra)
    with within_cpu_seconds(5):
        assert read_document(save("a.epub", data)).text == "It rained."


def encryption(algorithm: str, target: str) -> bytes:
    return (
        '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData>'
        f'<e:EncryptionMethod Algorithm="{algorithm}"/><e:CipherData>'
        f'<e:CipherReference URI="{target}"/></e:CipherData></e:EncryptedData></encryption>'
    ).encode()


def test_protected_books_are_refused(save, make_epub) -> None:
    rights = encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc", "OEBPS/one.xhtml")
    with pytest.raises(InputError):
        read_document(save("a.epub", book(make_epub, extra={"META-INF/encryption.xml": rights})))


def test_obfuscated_fonts_do_no_harm(save, make_epub) -> None:
    rights = encryption("http://www.idpf.org/2008/embedding", "OEBPS/font.otf")
    extra = {"META-INF/encryption.xml": rights}
    assert "It rained." in read_document(save("a.epub", book(make_epub, extra=extra))).text


RAIN = {"one.xhtml": "<p>It rained.</p>", "two b.xhtml": "<p>It stopped.</p>"}
LINKS = '<a href="one.xhtml">Rain&nbsp;1</a><a href="two%20b.xhtml">Sun</a>'
PAGE_LIST = '<a href="one.xhtml">7</a><a href="two%20b.xhtml">8</a>'


def package(*items: str) -> bytes:
    listed = "".join(f'<item id="i{n}" {item}/>' for n, item in enumerate(items))
    spine = "".join(f'<itemref idref="i{n}"/>' for n in range(len(items)))
    spine += '<itemref idref="gone"/>'
    return f"<package><manifest>{listed}</manifest><spine>{spine}</spine></package>".encode()


@pytest.mark.parametrize(
    "items",
    [
        ('href="one.xhtml" media-type="application/xml"', 'href="two%20b.xhtml"'),
        ('href="one.xhtml" media-type="Text/XML"', 'href="two b.xhtml"'),
        ('href="/OEBPS/one.xhtml"', 'href="/two%20b.xhtml"'),
        ('href="ONE.xhtml"', 'href="Two%20B.XHTML"'),
        ('href=".\\one.xhtml"', 'href="../OEBPS/two%20b.xhtml"'),
    ],
    ids=["application/xml", "space", "absolute", "case", "backslash"],
)
@pytest.mark.parametrize("name", ["two b.xhtml", "two%20b.xhtml"])
def test_links_as_they_are_found(save, make_epub, items: tuple[str, str], name: str) -> None:
    pages = {"one.xhtml": RAIN["one.xhtml"], name: RAIN["two b.xhtml"]}
    data = make_epub(pages, extra={"OEBPS/book.opf": package(*items, 'href="a" media-type="a/b"')})
    document = read_document(save("a.epub", data))
    assert document.text == "It rained.\n\nIt stopped."
    assert document.notes == (
        "page not read: OEBPS/a (a/b)",
        "page not in the book's list: gone",
    )


@pytest.mark.parametrize("path", ["/OEBPS/book.opf", "oebps/Book.opf", "OEBPS%2Fbook.opf"])
def test_a_package_by_another_path(save, make_epub, path: str) -> None:
    container = f'<container><rootfiles><rootfile full-path="{path}"/></rootfiles></container>'
    data = make_epub(RAIN, extra={"META-INF/container.xml": container.encode()})
    assert "It stopped." in read_document(save("a.epub", data)).text


@pytest.mark.parametrize(
    "navs",
    [
        f"<nav>{LINKS}</nav>",
        f'<nav epub:type="page-list">{PAGE_LIST}</nav><nav epub:type="toc">{LINKS}</nav>',
    ],
    ids=["plain", "beside a list of pages"],
)
def test_the_table_of_contents_of_an_epub3(save, make_epub, navs: str) -> None:
    spaces = 'xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops"'
    nav = f"<html {spaces}>{navs}</html>".encode()
    items = ('href="nav.xhtml" properties="nav"', 'href="one.xhtml"', 'href="two%20b.xhtml"')
    opf = package(*items).replace(b'<itemref idref="i0"/>', b"")
    data = make_epub(RAIN, extra={"OEBPS/book.opf": opf, "OEBPS/nav.xhtml": nav})
    document = read_document(save("a.epub", data))
    assert [section.label for section in document.sections] == ["Rain 1", "Sun"]


def test_a_page_that_is_listed_again_is_read_once(save, make_epub) -> None:
    opf = package(*('href="one.xhtml"', 'href="./one.xhtml"') * 1000, 'href="two%20b.xhtml"')
    document = read_document(save("a.epub", make_epub(RAIN, extra={"OEBPS/book.opf": opf})))
    assert document.text == "It rained.\n\nIt stopped."
    assert "pages listed again, read once: 1,999" in document.notes


def test_a_page_of_cdata(save, make_epub) -> None:
    page = b"<?xml version='1.0'?><html><body><p><![CDATA[It <rained>.]]></p></body></html>"
    data = make_epub(RAIN, extra={"OEBPS/one.xhtml": page})
    assert read_document(save("a.epub", data)).text.startswith("It <rained>.")
