"""A small view with every feature in it, and one made of what pages are broken with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.types import Answer, Citation, Document, Section, Span
from tests.web.browser import Drive, driven
from tests.web.tab import Tab

STORY = (
    "CHAPTER ONE\n\nAnn met Bo at the harbour. Bo had lost a silver key.\n\n"
    "CHAPTER TWO\n\nAnn found the key & gave it back.\r\nThey married in May.\n"
)

HOSTILE = (
    "<b>bold</b> </script><script>document.title='taken'</script> "
    "\"quoted\" 'single' &amp; ${policy} $title {{x}} <!-- \x00 \x1b \x7f \ud800 end. "
    "<img src=x onerror=\"document.title='taken'\"> ]]> "
    "שלום עולם \u202eabc\u202c 👩‍👩‍👧 e\u0301 \u2028 \ufffe end."
)


def spot(document: Document, words: str) -> Span:
    start = document.text.index(words)
    return document.span(start, start + len(words))


def people_and_things(document: Document, *, may: int) -> tuple[ViewNode, ...]:
    """Four entities of the story; the last comes with the step ``may``."""
    return tuple(
        ViewNode(name, "entity", name.title(), name.title(), spot(document, words), step)
        for name, words, step in (
            ("ann", "Ann", 0),
            ("bo", "Bo", 0),
            ("key", "silver key", 0),
            ("may", "May", may),
        )
    )


@pytest.fixture
def drive(tab: Tab, tmp_path: Path) -> Drive:
    """What steps that are run in a page returned: ``drive(page, steps)``."""
    return partial(driven, tab, tmp_path)


@pytest.fixture
def view() -> GraphView:
    second = STORY.index("CHAPTER TWO")
    document = Document.from_text(
        "story.txt",
        STORY,
        sections=(
            Section("chapter", "One", 0, second),
            Section("chapter", "Two", second, len(STORY)),
        ),
    )
    found = spot(document, "Ann found the key & gave it back.\r\nThey married in May.")
    nodes = (
        ViewNode("n2", "entity", "Bo", "Bo", spot(document, "Bo"), 0),
        ViewNode("n1", "entity", "Ann", "Ann", spot(document, "Ann met Bo at the harbour."), 0),
        ViewNode("n3", "event", "The key is found", "Ann finds it.", found, 1),
        ViewNode("n4", "rumour", "", "", spot(document, "They married in May."), 1),
    )
    edges = (
        ViewEdge("e2", "n1", "n2", "helps", found, 1),
        ViewEdge("e1", "n1", "n2", "meets", spot(document, "Ann met Bo"), 0),
        ViewEdge("e3", "n3", "n3", "recalls", spot(document, "silver key"), 1),
    )
    cited = Citation("n3", document.name, found, document.quote(found), document.sections[1])
    lost = Citation("gone", document.name, Span(document.id, 0, 7), "CHAPTER")
    answer = Answer(
        "Who found the key?",
        "Ann did.",
        "high",
        (cited, lost),
        ("read the graph",),
        ("a_mark",),
        0.5,
    )
    questions = ("Who found the key?", "When did they marry?")
    return GraphView("m1", "mindgraph", "tiny", document, questions, 2, nodes, edges, (answer,))


@pytest.fixture
def hypergraph(view: GraphView) -> GraphView:
    """Four entities and their memory points: two that become one, and one of two entities."""
    document, met = view.document, spot(view.document, "Ann met Bo")
    found = spot(document, "Ann found the key & gave it back.")
    entities = people_and_things(document, may=1)
    points = (
        ViewNode("p0", "memory point", "p0", "They met.", met, 0, gone=1, hyperedge=True),
        ViewNode("p1", "memory point", "p1", "Bo lost it.", met, 0, gone=1, hyperedge=True),
        ViewNode("p2", "memory point", "p2", "Passed over.", met, 1, gone=1, hyperedge=True),
        ViewNode("p3", "memory point", "p3", "Ann found what Bo lost.", found, 1, hyperedge=True),
        ViewNode("p4", "memory point", "p4", "They married.", found, 1, hyperedge=True),
    )
    joined = {"p0": "ann bo", "p1": "bo key", "p2": "ann key", "p3": "ann bo key", "p4": "ann may"}
    edges = tuple(
        ViewEdge(f"{each.id}-{name}", each.id, name, "joins", each.span, each.step, each.gone)
        for each in points
        for name in joined[each.id].split()
    )
    knows = ViewEdge("knows", "ann", "bo", "knows", met, 0)
    return replace(view, memory="hgmem", nodes=entities + points, edges=(*edges, knows))


@pytest.fixture
def hierarchy(view: GraphView) -> GraphView:
    """Entities, first in one category, then in two that are in a third; Bo is in both."""
    document, met = view.document, spot(view.document, "Ann met Bo")
    entities = people_and_things(document, may=2)
    categories = (
        ViewNode("c1", "layer 1", "People", "Who is there.", met, 1, layer=1),
        ViewNode("c2", "layer 1", "Losses", "What is lost.", met, 3, layer=1),
        ViewNode("c3", "layer 2", "Losses", "What is lost.", met, 3, layer=2),
        ViewNode("c4", "layer 3", "The story", "All of it.", met, 3, layer=3),
    )
    held = {"c1": "ann bo", "c2": "bo key", "c3": "c2", "c4": "c1 c3"}
    edges = tuple(
        ViewEdge(f"{each.id}-{name}", each.id, name, "holds", each.span, each.step)
        for each in categories
        for name in held[each.id].split()
    )
    knows = ViewEdge("knows", "ann", "bo", "knows", met, 0)
    answers = (
        Answer("Who?", "Bo.", "low", (), paths=(("c4", "c1", "bo"), ("c4", "c9", "ann"))),
        Answer("What?", "A key.", "low", (), paths=(("c4", "c3", "c2", "key"),)),
    )
    return replace(
        view,
        memory="mnemis",
        steps=4,
        questions=(),
        nodes=entities + categories,
        edges=(*edges, knows),
        answers=answers,
    )


@pytest.fixture
def hostile() -> GraphView:
    document = Document.from_text(HOSTILE, HOSTILE + "\n\n" + HOSTILE)
    whole = document.span(0, len(document.text))
    part = document.span(3, len(HOSTILE) - 2)
    nodes = (
        ViewNode(HOSTILE, HOSTILE, HOSTILE, HOSTILE, whole, 0),
        ViewNode(HOSTILE + "\x00", "claim", "</title><svg onload=1>", HOSTILE, part, 0),
        ViewNode(HOSTILE + "\x01", "k\x00", "\x00", "\ud800", part, 0),
    )
    edges = (
        ViewEdge(HOSTILE, HOSTILE, HOSTILE + "\x00", HOSTILE, part, 0),
        ViewEdge(HOSTILE + "\x00", HOSTILE, HOSTILE + "\x00", HOSTILE, part, 0),
    )
    citation = Citation(HOSTILE, HOSTILE, part, HOSTILE, Section("chapter", HOSTILE, 0, 5))
    answer = Answer(HOSTILE, HOSTILE, "low", (citation,), (HOSTILE,), (HOSTILE,))
    return GraphView(
        HOSTILE, HOSTILE, HOSTILE, document, (HOSTILE, "other"), 1, nodes, edges, (answer,)
    )
