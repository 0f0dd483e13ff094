"""The page in a real browser: opened from disk, and driven as a reader would drive it."""

from __future__ import annotations

import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from mgl.types import Document
from mgl.web.escape import visible
from mgl.web.export import to_html
from mgl.web.view import GraphView, ViewEdge, ViewNode

pytestmark = pytest.mark.browser

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

HARNESS = """<!doctype html><meta charset="utf-8">
<style>body{margin:0}iframe{border:0;display:block;width:%WIDTH%px;height:%HEIGHT%px}</style>
<script>
const rest = (ms) => new Promise((done) => setTimeout(done, ms));
const report = (said) => fetch("/report", { method: "POST", body: JSON.stringify(said) });
async function main() {
  const began = performance.now();
  const frame = document.createElement("iframe");
  frame.src = "/page.html%HASH%";
  document.body.append(frame);
  while (!frame.contentDocument?.documentElement?.dataset.ready) await rest(5);
  const ready = performance.now() - began;
  const [page, win] = [frame.contentDocument, frame.contentWindow];
  const one = (selector) => page.querySelector(selector);
  const all = (selector) => [...page.querySelectorAll(selector)];
  const node = (id) => all(".node").find((each) => each.dataset.id === id);
  const title = () => one("#detail h3")?.textContent ?? "";
  const press = (target, type, more = {}) =>
    target.dispatchEvent(new win.PointerEvent(type, { bubbles: true, pointerId: 1, ...more }));
  const key = (target, name) =>
    target.dispatchEvent(new win.KeyboardEvent("keydown", { bubbles: true, key: name }));
  const inSight = (element) => {
    const [box, pane] = [element.getBoundingClientRect(), one("#text").getBoundingClientRect()];
    return box.top >= pane.top && box.top <= pane.bottom - 10;
  };
  return await (async () => { %STEPS% })();
}
addEventListener("load", () =>
  main().then((said) => report({ said }), (error) => report({ error: String(error.stack) })));
</script><body></body>"""


@pytest.fixture(scope="session")
def chromium() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip("no Chromium on this machine")


def dumped(chromium: str, folder: Path, page: str, hash_: str = "") -> str:
    """The page's DOM after its scripts ran, opened from disk."""
    path = folder / "page.html"
    path.write_bytes(page.encode("utf-8"))
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [chromium, *FLAGS, profile, "--dump-dom", path.as_uri() + hash_]
    run = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return run.stdout.decode("utf-8")


@contextmanager
def served(pages: dict[str, str]) -> Iterator[tuple[str, queue.Queue[Any]]]:
    """The pages on 127.0.0.1, and what the harness reports."""
    reports: queue.Queue[Any] = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.split("?")[0])
            self.send_response(200 if page is not None else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write((page or "").encode())

        def do_POST(self) -> None:
            reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", reports
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def driven(
    chromium: str,
    folder: Path,
    page: str,
    steps: str,
    *,
    hash_: str = "",
    size: tuple[int, int] = (1280, 800),
) -> Any:
    """What ``steps``, run beside the page, returned."""
    harness = HARNESS.replace("%WIDTH%", str(size[0])).replace("%HEIGHT%", str(size[1]))
    harness = harness.replace("%HASH%", hash_).replace("%STEPS%", steps)
    with served({"/page.html": page, "/": harness}) as (address, reports):
        profile = f"--user-data-dir={folder / 'profile'}"
        command = [chromium, *FLAGS, profile, "--remote-debugging-port=0", address + "/"]
        browser = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            report = reports.get(timeout=90)
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
    assert "error" not in report, report["error"]
    return report["said"]


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
