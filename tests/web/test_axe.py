"""What axe, a checker of accessibility, finds on the pages: nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tab import open_tab

from mgl.memories.view import GraphView
from mgl.store.records import EditRecord
from mgl.web.export import to_html

pytestmark = pytest.mark.browser

FIND = """axe.run().then(({ violations }) => violations.map(
    ({ id, nodes }) => [id, nodes.map(({ target }) => target.join(" "))]))"""
OPENED = (
    "for (const each of document.querySelectorAll('#ask, #ask [hidden]')) each.hidden = false",
    "document.querySelector('#detail a').click()",
    "document.querySelector('#views [value=log]').click()",
    "document.querySelectorAll('#log-rows summary').forEach((each) => each.click())",
)


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its script, as the lock of this folder pins it."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm on this machine")
    folder = tmp_path_factory.mktemp("axe")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).with_name(name), folder)
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts"], cwd=folder, capture_output=True, timeout=120, check=False
    )
    if done.returncode:
        pytest.skip("axe-core cannot be fetched from the registry of npm")
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(
    axe: str,
    chromium: str,
    tmp_path: Path,
    dark: bool,
    request: pytest.FixtureRequest,
) -> None:
    """On three kinds of graph, a node and the log; dark pages are as narrow as a phone."""
    with open_tab(chromium, tmp_path) as tab:
        for name in ("view", "hypergraph", "hierarchy"):
            view: GraphView = request.getfixturevalue(name)
            spans = [node.span for node in view.nodes]
            edits = [EditRecord(0, "add", {"id": "x"}, "rejected", "empty", spans[0])]
            path = tmp_path / f"{name}.html"
            path.write_text(to_html(view, edits), encoding="utf-8")
            tab.show(path.as_uri(), size=(390, 844) if dark else (1440, 900), dark=dark)
            tab.run(f"{axe}; 0")
            for step in OPENED:
                tab.run(step)
                assert tab.run(FIND) == [], (name, step)
