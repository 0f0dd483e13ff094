"""Hyperedges on the page: areas that come, go, and are opened like nodes."""

from __future__ import annotations

import pytest

from mgl.memories.view import GraphView
from mgl.web.export import to_html
from tests.web.browser import Drive

pytestmark = pytest.mark.browser


def test_hyperedges_are_areas_that_come_and_go(drive: Drive, hypergraph: GraphView) -> None:
    said = drive(
        to_html(hypergraph),
        """
        const said = {};
        await rest(60);
        const size = (felt) => Object.fromEntries([...felt].map(([name, at]) => [name, at.length]));
        said.last = [size(feel()), one("#step-said").textContent];
        slide("0");
        await rest(60);
        const first = feel();
        said.first = [size(first), one("#step-said").textContent];
        const places = first.get("p0");
        click(places[0]);
        said.area = [title(), location.hash];
        said.joins = all("#detail li a").map((each) => each.textContent);
        said.gone = one("#detail dl").textContent.includes("step 2 of 2");
        said.label = one("#said").textContent;
        slide("1");
        said.closed = title();
        location.hash = "#node=p0";
        await rest(60);
        said.back = [title(), one("#step").value];
        slide("1");
        await rest(60);
        const place = feel().get("p3")[0];
        press(graph, "pointerdown", place);
        press(graph, "pointermove", { ...place, clientX: place.clientX + 100 });
        press(graph, "pointerup", { ...place, clientX: place.clientX + 100 });
        await rest(60);
        said.panned = feel().get("p3")[0].clientX - place.clientX;
        const kinds = all("#kinds button");
        said.counts = kinds.map((each) => each.textContent);
        kinds[0].click();
        await rest(60);
        said.alone = Object.keys(size(feel())).sort();
        return said;
        """,
    )
    felt, words = said["last"]
    assert set(felt) == {"", "Ann", "Bo", "Key", "May", "p3", "p4", "Ann — knows → Bo"} | {
        name for name in felt if "joins" in name
    }
    assert felt["p3"] > 3 * felt["Ann"]
    assert felt["p4"] > 3 * felt["Ann"]
    assert words == "step 2 of 2 · 4 nodes, 2 hyperedges, 1 edge"
    felt, words = said["first"]
    assert {"Ann", "Bo", "Key", "p0", "p1"} <= set(felt)
    assert not {"May", "p3", "p4"} & set(felt)
    assert words == "step 1 of 2 · 3 nodes, 2 hyperedges, 1 edge"
    assert said["area"] == ["p0", "#node=p0"]
    assert {"Ann", "Bo"} <= set(said["joins"])
    assert said["gone"]
    assert said["label"].startswith("memory point: p0, joins 2 nodes")
    assert said["closed"] == ""
    assert said["back"] == ["p0", "0"]
    assert abs(said["panned"] - 100) <= 16
    assert said["counts"] == ["entity4", "memory point2"]
    assert said["alone"] == ["", "p3", "p4"]
