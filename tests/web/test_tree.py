"""The hierarchy on the page: a tree that opens, follows the steps, and shows an answer's paths."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mgl.memories.view import GraphView
from mgl.web.export import to_html
from tests.web.browser import Drive

pytestmark = pytest.mark.browser

TOOLS = """
const rows = () => all("#tree [data-ref]").map((each) => each.querySelector("bdi").textContent);
const row = (name, among = all("#tree [data-ref]")) =>
  among.find((each) => each.querySelector("bdi").textContent === name);
const opened = () => all("#tree details[open] > summary bdi").map((each) => each.textContent);
const reached = () => all("#tree .reached bdi").map((each) => each.textContent);
const on = () => all("#tree [aria-current=true] bdi").map((each) => each.textContent);
const goTo = async (value) => {
  slide(value);
  await rest(60);
};
const open = async (target) => {
  target.click();
  await rest(60);
};
await rest(60);
"""


def test_the_tree_opens_selects_and_follows_the_steps(drive: Drive, hierarchy: GraphView) -> None:
    said = drive(
        to_html(replace(hierarchy, answers=())),
        TOOLS
        + """
        const said = { first: rows(), about: one("#about").textContent };
        said.drawn = [...feel().keys()].sort();
        said.kinds = all("#kinds button").map((each) => each.textContent);
        said.note = one("#tree .note").textContent;
        said.top = row("The story").textContent.replace(/\\s+/g, " ").trim();
        await open(row("The story"));
        said.opened = [rows(), title(), location.hash, on()];
        await open(row("Losses"));
        said.alone = [opened(), rows()];
        await open(row("People"));
        said.twice = rows().filter((each) => each === "Bo").length;
        await open(row("Bo"));
        said.leaf = [title(), location.hash, on(), inSight(one("mark.on"))];
        said.links = all("#detail h3").map((each) => each.textContent);
        const story = row("The story");
        const name = story.querySelector("bdi");
        const once = { bubbles: true, cancelable: true, detail: 1 };
        const pressed = () => name.dispatchEvent(new MouseEvent("click", once));
        pressed();
        await rest(60);
        said.named = [title(), story.parentElement.open];
        pressed();
        await rest(60);
        said.again = [title(), story.parentElement.open];
        await goTo("1");
        const note = () => one("#tree .note").textContent;
        said.second = [rows(), note(), one("#step-said").textContent, title()];
        await goTo("0");
        said.none = [rows(), note()];
        await goTo("3");
        said.back = rows();
        return said;
        """,
    )
    assert said["first"] == ["The story"]
    assert "4 nodes, 4 categories, 1 edge" in said["about"]
    assert said["drawn"] == ["", "Ann", "Ann — knows → Bo", "Bo", "Key", "May"]
    assert said["kinds"] == ["entity4"]
    assert said["note"] == "1 node in no category"
    assert said["top"] == "The story layer 3 · 2"
    assert said["opened"] == [
        ["The story", "Losses", "People"],
        "The story",
        "#node=c4",
        ["The story"],
    ]
    assert said["alone"] == [
        ["The story", "Losses", "Losses"],
        ["The story", "Losses", "Losses", "Bo", "Key", "People"],
    ]
    assert said["twice"] == 2
    assert said["leaf"] == ["Bo", "#node=bo", ["Bo", "Bo"], True]
    assert said["links"][0] == "In 2"
    assert said["named"] == ["The story", True]
    assert said["again"] == ["The story", False]
    assert said["second"] == [
        ["People"],
        "1 node in no category",
        "step 2 of 4 · 3 nodes, 1 category, 1 edge",
        "",
    ]
    assert said["none"] == [[], "3 nodes in no category"]
    assert said["back"] == ["The story"]


def test_the_answer_in_sight_opens_its_paths(drive: Drive, hierarchy: GraphView) -> None:
    said = drive(
        to_html(hierarchy),
        TOOLS
        + """
        const said = { last: [opened(), reached()] };
        await open(all("details.asked > summary")[0]);
        said.first = [opened(), reached()];
        await open(all("details.asked > summary")[0]);
        said.none = [opened(), reached()];
        location.hash = "#node=key";
        await rest(60);
        said.found = [opened(), on()];
        location.hash = "#node=ann";
        await rest(60);
        said.moved = [opened(), on()];
        return said;
        """,
    )
    way = ["The story", "Losses", "Losses"]
    assert said["last"] == [way, [*way, "Key"]]
    assert said["first"] == [["The story", "People"], ["The story", "People", "Bo"]]
    assert said["none"] == [[], []]
    assert said["found"] == [way, ["Key"]]
    assert said["moved"] == [["The story", "People"], ["Ann"]]


@pytest.mark.parametrize("size", [(360, 740), (1000, 800), (1400, 900)])
def test_a_tree_fits_the_window(drive: Drive, hierarchy: GraphView, size: tuple[int, int]) -> None:
    said = drive(
        to_html(hierarchy),
        """
        await rest(200);
        const boxes = ["#tree", "#stage", "#text"].map((each) => one(each).getBoundingClientRect());
        return { wide: document.documentElement.scrollWidth, high: boxes.map((box) => box.height) };
        """,
        size=size,
    )
    assert said["wide"] <= size[0]
    assert min(said["high"]) > 80
