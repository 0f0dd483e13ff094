"""A page opened in headless Chromium: as it is, or with steps run beside it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tab import FLAGS

__all__ = ["driven", "dumped"]

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
  const title = () => one("#detail h2")?.textContent ?? "";
  const press = (target, type, more = {}) =>
    target.dispatchEvent(new win.PointerEvent(type, { bubbles: true, pointerId: 1, ...more }));
  const key = (target, name) =>
    target.dispatchEvent(new win.KeyboardEvent("keydown", { bubbles: true, key: name }));
  const graph = one("#graph");
  /** What the pointer is told at each point of a grid over the graph. */
  const feel = () => {
    const box = graph.getBoundingClientRect();
    const found = new Map();
    for (let y = box.top + 4; y < box.bottom; y += 8) {
      for (let x = box.left + 4; x < box.right; x += 8) {
        press(graph, "pointermove", { clientX: x, clientY: y });
        const name = one("#tip").hidden ? "" : one("#tip b").textContent;
        if (!found.has(name)) found.set(name, []);
        found.get(name).push({ clientX: x, clientY: y });
      }
    }
    press(graph, "pointerleave");
    return found;
  };
  const click = (place) => {
    press(graph, "pointerdown", place);
    press(graph, "pointerup", place);
  };
  const slide = (value) => {
    one("#step").value = value;
    one("#step").dispatchEvent(new win.Event("input"));
  };
  const inSight = (element) => {
    const [box, pane] = [element.getBoundingClientRect(), one("#text").getBoundingClientRect()];
    return box.top >= pane.top && box.top <= pane.bottom - 10;
  };
  return await (async () => { %STEPS% })();
}
addEventListener("load", () =>
  main().then((said) => report({ said }), (error) => report({ error: String(error.stack) })));
</script><body></body>"""


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
