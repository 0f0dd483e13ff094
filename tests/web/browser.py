"""A page opened from disk in the browser's tab, and steps run there as a reader would go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.web.tab import Tab

__all__ = ["Drive", "driven", "dumped", "led", "shown"]

Drive = Callable[..., Any]
"""The fixture ``drive``."""

TOOLS = """
const rest = (ms) => new Promise((done) => setTimeout(done, ms));
const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const title = () => one("#detail h2")?.textContent ?? "";
const press = (target, type, more = {}) =>
  target.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, ...more }));
const key = (target, name) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { bubbles: true, key: name }));
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
  one("#step").dispatchEvent(new Event("input"));
};
const inSight = (element) => {
  const [box, pane] = [element.getBoundingClientRect(), one("#text").getBoundingClientRect()];
  return box.top >= pane.top && box.top <= pane.bottom - 10;
};
"""


def shown(tab: Tab, folder: Path, page: str, hash_: str = "", **look: Any) -> None:
    """Open the page from a file of the folder, and wait for its scripts."""
    path = folder / "page.html"
    path.write_bytes(page.encode("utf-8"))
    tab.show(path.as_uri() + hash_, **look)


def dumped(tab: Tab, folder: Path, page: str, hash_: str = "") -> str:
    """The page's DOM after its scripts ran."""
    shown(tab, folder, page, hash_)
    dom = tab.run("document.documentElement.outerHTML")
    assert isinstance(dom, str)
    return dom


def driven(
    tab: Tab, folder: Path, page: str, steps: str, *, size: tuple[int, int] = (1280, 800)
) -> Any:
    """What ``steps``, run in the page, returned."""
    shown(tab, folder, page, size=size)
    return tab.run(f"(async () => {{ {TOOLS} {steps} }})()")


def led(tab: Tab, script: str) -> None:
    """Run what leads to another page, or to the same anew, and wait for that."""
    tab.run("window.asItWas = true")
    tab.run(script)
    tab.wait("!window.asItWas && document.documentElement.dataset.ready")
