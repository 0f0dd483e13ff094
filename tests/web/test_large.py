"""A graph of thousands of nodes: its picture moves with the hand, and is drawn anew at rest."""

from __future__ import annotations

import random
from itertools import accumulate
from pathlib import Path

import pytest

from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.types import Document
from mgl.web.export import to_html
from tests.web.browser import shown
from tests.web.tab import Tab

pytestmark = pytest.mark.browser

READ = """((id) => {
    const { width, height } = document.querySelector(id);
    const all = document.querySelector(id).getContext("2d").getImageData(0, 0, width, height);
    let [sum, count] = [0, 0];
    for (let at = 3; at < all.data.length; at += 4) {
        if (all.data[at] < 40) continue;
        sum += ((at - 3) / 4) % width;
        count += 1;
    }
    return [sum / count, count];
})"""
PICTURE, HAND = f"{READ}('#far')", f"{READ}('#graph')"
POINT = """(type, x, y) => {
    const graph = document.querySelector("#graph");
    const { left, top } = graph.getBoundingClientRect();
    const place = { clientX: left + x, clientY: top + y };
    graph.dispatchEvent(new PointerEvent(type, { ...place, bubbles: true, pointerId: 1 }));
}"""
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


KINDS = ("entity", "event", "claim", "concept")


def make_view(count: int) -> GraphView:
    """A graph of this many nodes and nearly twice as many edges, the same each time."""
    chance = random.Random(20)
    sentences = [f"Person {n} met many others in town {n % 97}. " for n in range(count)]
    document = Document.from_text("made.txt", "".join(sentences))
    starts = [0, *accumulate(map(len, sentences))]
    spans = [document.span(starts[n], starts[n + 1] - 1) for n in range(count)]
    nodes = tuple(
        ViewNode(f"n{n}", KINDS[n % 4], f"Person {n}", sentences[n], spans[n], n * 100 // count)
        for n in range(count)
    )
    ends = [0]
    edges: list[ViewEdge] = []
    for n in range(1, count):
        for other in {chance.choice(ends), chance.choice(ends)}:
            step = n * 100 // count
            edges.append(ViewEdge(f"e{len(edges)}", f"n{n}", f"n{other}", "met", spans[n], step))
            ends += [n, other]
    return GraphView("made", "made", "none", document, (), 100, nodes, tuple(edges))


@pytest.fixture(scope="module")
def page() -> str:
    return to_html(make_view(2100))


def test_a_large_graph_moves_with_the_hand(tab: Tab, tmp_path: Path, page: str) -> None:
    shown(tab, tmp_path, page)
    tab.run(FRAME)
    assert tab.run("document.querySelector('#stage').dataset.shown") == "2100"
    middle, drawn = tab.run(PICTURE)
    assert drawn > 5000
    tab.run(f"({POINT})('pointerdown', 9, 9), ({POINT})('pointermove', 49, 9)")
    tab.run(FRAME)
    moved, _ = tab.run(PICTURE)
    assert abs(moved - middle - 40) < 8
    tab.run(f"({POINT})('pointerup', 49, 9)")
    tab.wait(f"{PICTURE}[1] > 5000")
    assert abs(tab.run(PICTURE)[0] - middle - 40) < 12
    tab.run("document.querySelector('#detail a').click()")
    tab.run(FRAME)
    assert tab.run(PICTURE)[1] > 5000
    assert 50 < tab.run(HAND)[1] < tab.run(PICTURE)[1]
    assert tab.run("document.querySelector('#detail h2').textContent").startswith("Person ")


def test_pointing_at_a_node_draws_it_alone(tab: Tab, tmp_path: Path, page: str) -> None:
    """All else stays as it is drawn, and is only seen fainter."""
    shown(tab, tmp_path, page)
    tab.run(FRAME)
    assert tab.run("getComputedStyle(document.querySelector('#far')).opacity") == "1"
    tab.run("document.querySelector('#far').getContext('2d').fillRect(0, 0, 3, 3)")
    tab.run("document.querySelector('#graph').focus()")
    tab.press("ArrowRight", 39)
    tab.run(FRAME)
    assert float(tab.run("getComputedStyle(document.querySelector('#far')).opacity")) < 0.5
    assert tab.run(HAND)[1] > 50
    corner = "document.querySelector('#far').getContext('2d').getImageData(1, 1, 1, 1).data[3]"
    assert tab.run(corner) == 255
    tab.run("document.querySelector('#graph').blur()")
    tab.run(FRAME)
    assert tab.run("getComputedStyle(document.querySelector('#far')).opacity") == "1"
    assert tab.run(f"{HAND}[1]") == 0
