"""The page in a real browser: opened from disk, and driven as a reader would drive it."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.types import Document
from mgl.web.escape import visible
from mgl.web.export import to_html
from tests.web.browser import driven, dumped

pytestmark = pytest.mark.browser


def book(nodes: int, edges: int, characters: int) -> GraphView:
    chance = random.Random(7)
    words = (
        "the",
        "harbour",
        "was",
        "quiet",
        "and",
        "a",
        "key",
        "lay",
        "where",
        "nobody",
        "looked",
    )
    lines: list[str] = []
    length = 0
    while length < characters:
        line = " ".join(chance.choices(words, k=13)) + ("\n\n" if chance.random() < 0.2 else "\n")
        lines.append(line)
        length += len(line)
    document = Document.from_text("book.txt", "".join(lines)[:characters])

    def span() -> Any:
        start = chance.randrange(characters - 300)
        return document.span(start, start + chance.randrange(20, 250))

    kinds = ("entity", "event", "claim", "concept", "stat")
    drawn = tuple(
        ViewNode(f"n{i}", chance.choice(kinds), f"node {i}", f"what node {i} says", span(), i % 40)
        for i in range(nodes)
    )
    linked = tuple(
        ViewEdge(
            f"e{i}",
            f"n{chance.randrange(1 + i % nodes)}",
            f"n{chance.randrange(nodes)}",
            "leads to",
            span(),
            39,
        )
        for i in range(edges)
    )
    return GraphView("m", "mindgraph", "tiny", document, ("What lay there?",), 40, drawn, linked)


def test_a_node_named_in_the_address_is_open_with_its_passage(
    chromium: str, tmp_path: Path, view: GraphView
) -> None:
    dom = dumped(chromium, tmp_path, to_html(view), "#node=n3")
    assert 'data-ready="true"' in dom
    assert re.search(r'<g class="node[^"]* on[^"]*"[^>]*data-id="n3"[^>]*aria-pressed="true"', dom)
    assert re.search(r'<h3 dir="auto">The key is found</h3>', dom)
    quoted = re.search(r"<blockquote[^>]*>(.*?)</blockquote>", dom, re.S)
    assert quoted is not None
    assert quoted.group(1).replace("&amp;", "&").split() == (
        view.document.quote(view.nodes[2].span).split()
    )
    current = re.search(r'<mark class="([^"]*)"[^>]*aria-current="true"[^>]*>([^<]*)', dom)
    assert current is not None
    assert "on" in current.group(1).split()
    assert current.group(2).startswith("Ann found the key")


def test_hostile_text_runs_nothing(chromium: str, tmp_path: Path, hostile: GraphView) -> None:
    address = "#node=" + quote(visible(hostile.nodes[1].id), safe="")
    dom = dumped(chromium, tmp_path, to_html(hostile), address)
    assert 'data-ready="true"' in dom
    title = re.search(r"<title>(.*?)</title>", dom, re.S)
    assert title is not None
    assert title.group(1).startswith("&lt;b&gt;bold")
    assert "<img" not in dom
    assert len(re.findall(r"<script\b", dom)) == 2
    assert 'aria-pressed="true"' in dom


def test_an_empty_graph_says_so(chromium: str, tmp_path: Path, view: GraphView) -> None:
    empty = replace(view, nodes=(), edges=(), answers=())
    dom = dumped(chromium, tmp_path, to_html(empty), "#node=n1")
    assert 'data-ready="true"' in dom
    assert re.search(r'<p id="empty">The graph is empty', dom)


def test_clicks_keys_and_controls(chromium: str, tmp_path: Path, view: GraphView) -> None:
    said = driven(
        chromium,
        tmp_path,
        to_html(view),
        """
        const said = {};
        press(node("n1"), "pointerdown");
        press(node("n1"), "pointerup");
        said.clicked = [title(), win.location.hash];
        key(node("n1"), "ArrowRight");
        key(node("n1"), "ArrowLeft");
        key(node("n1"), "ArrowUp");
        key(node("n1"), "ArrowDown");
        said.focused = page.activeElement.dataset.id;
        key(page.activeElement, "Enter");
        said.entered = all("[aria-pressed=true].node").map((each) => each.dataset.id);
        const shared = all("mark").find((each) => each.textContent === "Bo");
        said.shared = [];
        for (let turn = 0; turn < 4; turn++) {
          shared.click();
          said.shared.push(title());
        }
        one("a.chip").click();
        await rest(60);
        said.chip = [title(), inSight(one("mark.on"))];
        one("#detail ul a[data-ref=e2]").click();
        said.edge = [title(), one("#detail blockquote").textContent.slice(0, 9)];
        said.cited = all(".node.cited").map((each) => each.dataset.id);
        key(page.body, "Escape");
        said.closed = all("#detail .index li").length;
        const slide = (value) => {
          one("#step").value = value;
          one("#step").dispatchEvent(new win.Event("input"));
          return all(".node").filter((each) => !each.hasAttribute("hidden")).length;
        };
        said.steps = [slide("0"), all("mark:not(.off)").length < all("mark").length, slide("1")];
        const kinds = all("#kinds button");
        kinds[0].click();
        said.kinds = [kinds.length, one("#stage").dataset.shown];
        kinds[0].click();
        one("#search").value = "KEY";
        one("#search").dispatchEvent(new win.Event("input"));
        said.found = [one("#found").textContent, all(".node:not(.dim)").length];
        key(one("#search"), "Enter");
        said.jumped = title();
        return said;
        """,
    )
    assert said["clicked"] == ["Ann", "#node=n1"]
    assert said["focused"] != "n1"
    assert said["entered"] == [said["focused"]]
    assert sorted(set(said["shared"])) == ["Ann", "Bo", "meets"]
    assert said["chip"] == ["The key is found", True]
    assert said["edge"] == ["recalls", "silver ke"]
    assert said["cited"] == ["n3"]
    assert said["closed"] == 4
    assert said["steps"] == [2, True, 4]
    assert said["kinds"] == [3, "2"]
    assert said["found"] == ["1 of 4", 1]
    assert said["jumped"] == "The key is found"


def test_a_book_of_500_000_characters_opens_quickly_at_the_passage(
    chromium: str, tmp_path: Path
) -> None:
    view = book(200, 400, 500_000)
    last = max(view.nodes, key=lambda node: node.span.start)
    said = driven(
        chromium,
        tmp_path,
        to_html(view),
        """
        await rest(400);
        const seen = inSight(one("mark[aria-current]"));
        const start = performance.now();
        one("#after").click();
        one("#text").getBoundingClientRect();
        const moved = performance.now() - start;
        await rest(200);
        const next = inSight(one("mark[aria-current]"));
        return { ready, seen, moved, next, nodes: all(".node").length };
        """,
        hash_=f"#node={last.id}",
    )
    assert said["seen"]
    assert said["next"]
    assert said["nodes"] == 200
    assert said["ready"] < 5000


@pytest.mark.parametrize("size", [(360, 740), (1280, 800)])
def test_nothing_is_wider_than_the_window(
    chromium: str, tmp_path: Path, view: GraphView, size: tuple[int, int]
) -> None:
    said = driven(
        chromium,
        tmp_path,
        to_html(view),
        """
        await rest(200);
        return {
          wide: page.documentElement.scrollWidth,
          graph: one("#stage").clientHeight,
          pane: one("#text").clientHeight,
          seen: inSight(one("mark[aria-current]")),
        };
        """,
        hash_="#node=n3",
        size=size,
    )
    assert said["wide"] <= size[0]
    assert said["graph"] > 200
    assert 200 < said["pane"] < size[1]
    assert said["seen"]
