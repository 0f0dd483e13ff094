"""Hyperedges on the page: areas that come, go, and are opened like nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.memories.view import GraphView
from mgl.web.export import to_html
from tests.web.browser import driven

pytestmark = pytest.mark.browser


def test_hyperedges_are_areas_that_come_and_go(
    chromium: str, tmp_path: Path, hypergraph: GraphView
) -> None:
    said = driven(
        chromium,
        tmp_path,
        to_html(hypergraph),
        """
        const said = {};
        const there = (selector) => all(selector).filter((each) => !each.hasAttribute("hidden"));
        const names = () => there(".node").map((each) => each.dataset.id).sort();
        const area = (id) => all(".area").find((each) => each.dataset.ref === node(id).dataset.ref);
        const slide = async (value) => {
          one("#step").value = value;
          one("#step").dispatchEvent(new win.Event("input"));
          await rest(60);
        };
        const covers = (id, other) => {
          const place = node(other).getAttribute("transform").match(/-?[0-9.]+/g).map(Number);
          const point = one("#graph").createSVGPoint();
          [point.x, point.y] = place;
          return area(id).isPointInFill(point);
        };
        await rest(60);
        said.last = [names(), there(".area").length, one("#step-said").textContent];
        said.covered = ["ann", "bo", "key", "may"].map((each) => covers("p3", each));
        said.pair = ["ann", "may", "p4"].map((each) => covers("p4", each));
        const before = area("p3").getAttribute("d");
        said.corners = /NaN|undefined/.test(before);
        await slide("0");
        said.first = [names(), there(".area").length, one("#step-said").textContent];
        said.fresh = there(".area.fresh").length;
        press(area("p0"), "pointerdown");
        press(area("p0"), "pointerup");
        said.area = [title(), win.location.hash, area("p0").classList.contains("on")];
        said.joins = all("#detail li a").map((each) => each.textContent);
        said.gone = one("#detail dl").textContent.includes("step 2 of 2");
        said.label = node("p0").getAttribute("aria-label");
        await slide("1");
        said.closed = title();
        win.location.hash = "#node=p0";
        await rest(60);
        said.back = [title(), one("#step").value];
        key(node("p0"), "ArrowRight");
        key(page.activeElement, "Enter");
        said.keyed = page.activeElement.classList.contains("on");
        await slide("1");
        const camera = one("#world").getAttribute("transform");
        press(area("p3"), "pointerdown", { clientX: 200, clientY: 200 });
        press(area("p3"), "pointermove", { clientX: 240, clientY: 200 });
        press(area("p3"), "pointerup", { clientX: 240, clientY: 200 });
        await rest(60);
        said.panned = one("#world").getAttribute("transform") !== camera;
        const kinds = all("#kinds button");
        said.counts = kinds.map((each) => each.textContent);
        kinds[0].click();
        await rest(60);
        said.alone = [there(".node").length, there(".area").length];
        said.dot = /NaN|undefined/.test(area("p3").getAttribute("d"));
        return said;
        """,
    )
    entities = ["ann", "bo", "key", "may"]
    assert said["last"] == [
        [*entities, "p3", "p4"],
        2,
        "step 2 of 2 · 4 nodes, 2 hyperedges, 1 edge",
    ]
    assert said["covered"][:3] == [True, True, True]
    assert said["pair"] == [True, True, True]
    assert said["corners"] is False
    assert said["first"] == [
        ["ann", "bo", "key", "p0", "p1"],
        2,
        "step 1 of 2 · 3 nodes, 2 hyperedges, 1 edge",
    ]
    assert said["fresh"] == 2
    assert said["area"] == ["p0", "#node=p0", True]
    assert {"Ann", "Bo"} <= set(said["joins"])
    assert said["gone"]
    assert said["label"] == "memory point: p0, joins 2 nodes"
    assert said["closed"] == ""
    assert said["back"] == ["p0", "0"]
    assert said["keyed"]
    assert said["panned"]
    assert said["counts"] == ["entity4", "memory point2"]
    assert said["alone"] == [2, 2]
    assert said["dot"] is False
