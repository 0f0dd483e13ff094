from __future__ import annotations

import pytest

from mgl.errors import InputError
from mgl.text import read_document
from mgl.text.markup import extract


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
        ("index.html", "index.html"),
        ("un<b>believ</b>able", "unbelievable"),
        pytest.param("<div>" * 20_000 + "deep" + "</div>" * 20_000, "deep", id="deep"),
    ],
)
def test_what_a_reader_sees(source: str, text: str) -> None:
    assert shown(source) == text


def test_a_page_without_text(save) -> None:
    with pytest.raises(InputError):
        read_document(save("a.html", "<html><script>build()</script></html>"))


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


@pytest.mark.parametrize("declared", ["utf-8", "klingon", "hex"])
def test_a_wrong_declaration_is_passed_over(save, declared: str) -> None:
    source = f'<meta charset="{declared}"><p>Il était une fois une forêt éloignée.'
    document = read_document(save("a.html", source.encode("cp1252")))
    assert document.text == "Il était une fois une forêt éloignée."
    assert "guessed" in document.notes[0]
