from __future__ import annotations

import pytest

from mgl.errors import InputError
from mgl.text import read_document
from mgl.text.markup import extract, read_html
from tests.effort import within_cpu_seconds

KB = 1024


def shown(source: str) -> str:
    return extract(source)[0]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>It\n  <b>rained</b> on </p>\n<p>and on.", "It rained on\n\nand on."),
        ("one<br>two<br><br>three", "one\ntwo\n\nthree"),
        ("<table><tr><td>a<td>b</tr><tr><td>c</td></tr></table>", "a\tb\nc"),
        ("<ul><li>a</li><li>b</li></ul>", "a\n\nb"),
        ("<pre>a\n  b</pre>c", "a\n  b\n\nc"),
        ("a<script>no()</script><style>no</style><!-- no --><template>no</template> b", "a b"),
        ("<head><title>no</title></head><body>a", "a"),
        ("&lt;p&gt; &eacute;&nbsp;&#128512;", "<p> é\xa0😀"),
        ("&#xD800;&#0;", "\ufffd\ufffd"),
        ("<ruby>東<rp>(</rp><rt>とう</rt></ruby>京", "東京"),
        ("<p>a<p>b<div>c<div>d</p>", "a\n\nb\n\nc\n\nd"),
        ("<details><summary>a</summary>b</details>", "a\n\nb"),
        ("<select><option>a<option>b</select><button>c</button>d", "a\n\nb\n\nc\n\nd"),
        ("index.html", "index.html"),
        ("un<b>believ</b>able", "unbelievable"),
        pytest.param("<div>" * 20_000 + "deep" + "</div>" * 20_000, "deep", id="deep"),
    ],
)
def test_what_a_reader_sees(source: str, text: str) -> None:
    assert shown(source) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<head><title>no</title><body><h1>Trip</h1><p>yes", "Trip\n\nyes"),
        ("<head><title>no</title><h1>Trip</h1><p>yes", "Trip\n\nyes"),
        ("<head><title>no</title><article>yes</article>", "yes"),
        ("<head><title>no</title><meta charset=utf-8>yes", "yes"),
        ("<title>no</title><p>yes", "yes"),
        ("<head><title/><script src='a.js'/></head><p>yes", "yes"),
        ("<ruby>東<rt>とう</ruby>京", "東京"),
        ("<ruby>東<rp>(<rt>とう<rp>)</ruby>京", "東京"),
        ("<ruby>東<rt>とう<rb>京<rt>きょう</ruby>都", "東京都"),
        ("yes<!-- no", "yes"),
        ("yes<script>no", "yes"),
        ("yes<![CDATA[ no ", "yes"),
        ("yes <b", "yes"),
        ("<textarea><b>yes</b></textarea>", "<b>yes</b>"),
    ],
)
def test_what_is_left_open_hides_nothing_else(source: str, text: str) -> None:
    assert shown(source) == text


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("<a " * (32 * KB // 3), id="unclosed tags"),
        pytest.param('<a b="c' * 10_000, id="unclosed attributes"),
        pytest.param("<p " + " ".join(f"a{n}=1" for n in range(25_000)) + ">", id="attributes"),
        pytest.param("<p title='" + "x" * 512 * KB, id="huge attribute"),
        pytest.param("<!--" * 32 * KB, id="comments"),
        pytest.param("<![CDATA[" * 32 * KB, id="sections"),
        pytest.param("<" * 128 * KB, id="less-than signs"),
        pytest.param("</a " * 32 * KB, id="unclosed end tags"),
        pytest.param("<script><!--<script>" * 4 * KB, id="scripts"),
        pytest.param("&amp;&x;&" * 32 * KB, id="references"),
        pytest.param("<div>" * 20_000 + "text" + "</div>" * 20_000, id="deep"),
        pytest.param("<div><b><i>" * 16 * KB, id="deep and left open"),
        pytest.param("<b><div></b>" * 8 * KB, id="crossed"),
        pytest.param("<table>" + "x<b>" * 32 * KB, id="in a table"),
        pytest.param("<h1><div>x" * 16 * KB, id="headings left open"),
    ],
)
def test_no_markup_takes_long(source: str) -> None:
    with within_cpu_seconds(3):
        shown(source)


def test_end_tags_that_close_nothing_are_limited(save) -> None:
    page = save("a.html", "<html>" + "<x>" * 200_000 + "</y>" * 200_000)
    with within_cpu_seconds(5), pytest.raises(InputError) as caught:
        read_document(page)
    assert caught.value.hint


@pytest.mark.parametrize("source", ["<html><script>build()</script></html>", "", " ", "<!-- -->"])
def test_a_page_without_text(source: str) -> None:
    with pytest.raises(InputError, match="no text"):
        read_html(source.encode(), "a.html")


def test_headings_are_chapters(save) -> None:
    source = "<h1>Weather</h1><p>In short.</p><h2>The <i>rain</i></h2><p>Wet.</p><h2></h2>"
    document = read_document(save("a.html", source))
    assert [(s.label, document.text[s.start : s.end]) for s in document.sections] == [
        ("Weather", "Weather\n\nIn short.\n\n"),
        ("The rain", "The rain\n\nWet."),
    ]


@pytest.mark.parametrize("declared", ['<meta charset="koi8-r">', '<?xml encoding="koi8-r"?>'])
def test_the_declared_encoding_counts(save, declared: str) -> None:
    document = read_document(save("a.html", (declared + "<p>Дождь").encode("koi8-r")))
    assert document.text == "Дождь"


@pytest.mark.parametrize("declared", ["utf-8", "klingon", "hex", "undefined"])
def test_a_wrong_declaration_is_passed_over(save, declared: str) -> None:
    source = f'<meta charset="{declared}"><p>Il était une fois une forêt éloignée.'
    document = read_document(save("a.html", source.encode("cp1252")))
    assert document.text == "Il était une fois une forêt éloignée."
    assert "guessed" in document.notes[0]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("<p>漢<ruby>字<rt>ji<p>Next.", "漢字\n\nNext."),
        ("<p>a<![CDATA[ < b & c]]> d</p>", "a < b & c d"),
        ("<p>a<![CDATA[b", "a"),
        ('<!DOCTYPE html [<!ENTITY x "y">]><p>a&nbsp;b', "a\xa0b"),
        ("<html><head><title>T<body><p>a", ""),
        ("<html><head><title>T</title><p>a<ul><li>b<li>c", "a\n\nb\n\nc"),
    ],
)
def test_pages_as_they_are_found(source: str, text: str) -> None:
    assert extract(source)[0] == text
