"""What axe, a checker of accessibility, finds on the pages: nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mgl.memories.view import GraphView
from mgl.store.records import EditRecord
from mgl.web.export import to_html
from tests.web.browser import shown
from tests.web.tab import Tab

pytestmark = pytest.mark.browser

FIND = """axe.run().then(({ violations }) => violations.map(
    ({ id, nodes }) => [id, nodes.map(({ target }) => target.join(" "))]))"""
OPENED = (
    "for (const each of document.querySelectorAll('#ask, #ask [hidden]')) each.hidden = false",
    "document.querySelector('#detail a').click()",
    "document.querySelector('#views [value=log]').click()",
    "document.querySelectorAll('#log-rows summary').forEach((each) => each.click())",
)


def check_axe(tab: Tab, axe: str) -> None:
    tab.run(f"{axe}; 0")
    assert tab.run(FIND) == [], tab.run("location.href")


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(
    axe: str, tab: Tab, tmp_path: Path, dark: bool, request: pytest.FixtureRequest
) -> None:
    """On three kinds of graph, a node and the log; dark pages are as narrow as a phone."""
    for name in ("view", "hypergraph", "hierarchy"):
        view: GraphView = request.getfixturevalue(name)
        spans = [node.span for node in view.nodes]
        edits = [EditRecord(0, "add", {"id": "x"}, "rejected", "empty", spans[0])]
        size = (390, 844) if dark else (1440, 900)
        shown(tab, tmp_path, to_html(view, edits), size=size, dark=dark)
        tab.run(f"{axe}; 0")
        for step in OPENED:
            tab.run(step)
            assert tab.run(FIND) == [], (name, step)
