"""The page in a real browser: opened from disk, and driven as a reader would drive it."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from mgl.memories.view import GraphView
from mgl.web.escape import visible
from mgl.web.export import to_html
from tests.web.browser import driven, dumped

pytestmark = pytest.mark.browser


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
