from __future__ import annotations

import json
from html.parser import HTMLParser
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from mgl.web.escape import html_text, json_text, script_json, visible, xml_text

ANY = st.text(st.characters(exclude_categories=()), max_size=60)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags = 0
        self.title: str | None = ""
        self.text = ""

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags += 1
        self.title = dict(attrs).get("title")

    def handle_data(self, data: str) -> None:
        self.text += data


@given(ANY)
def test_html_reads_back_as_text_in_content_and_attributes(text: str) -> None:
    reader = _Reader()
    reader.feed(f'<p title="{html_text(text)}">{html_text(text)}</p>')
    reader.close()
    assert (reader.tags, reader.title, reader.text) == (1, visible(text), visible(text))


@given(ANY)
def test_visible_keeps_offsets_and_can_be_written(text: str) -> None:
    assert len(visible(text)) == len(text)
    visible(text).encode("utf-8")


def test_visible_shows_what_cannot_be_seen() -> None:
    assert visible("a\x00b\x7f\ud800\uffff\tc\r\n") == "a␀b␡\ufffd\ufffd\tc\r\n"


@given(ANY)
def test_json_can_be_written_and_reads_back(text: str) -> None:
    script = script_json([text])
    assert script.isascii()
    assert not set("<>&") & set(script)
    for written in (script, json_text([text]).encode("utf-8")):
        (read,) = json.loads(written)
        assert read.encode("utf-16", "surrogatepass") == text.encode("utf-16", "surrogatepass")


@given(ANY)
def test_xml_text_is_accepted_by_an_xml_parser(text: str) -> None:
    element = ElementTree.Element("a")
    element.text = xml_text(text)
    ElementTree.fromstring(ElementTree.tostring(element, encoding="utf-8"))


def test_xml_text_keeps_what_xml_allows() -> None:
    assert xml_text("a\x00\x0b\ufffe\ud800b\t\n\r👩é") == "ab\t\n\r👩é"
