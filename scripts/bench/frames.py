#!/usr/bin/env python3
"""How fast the page draws a large graph while a reader moves it, in headless Chromium.

    python scripts/bench/frames.py --nodes 10000 --chromium /usr/bin/chromium --out folder

The graph is made: each node is tied to two earlier ones, those with more edges more often, and
stands on its own sentence. A hand drags, zooms and hovers in every frame; printed are the
milliseconds between frames (p50, p95) and those that the page's own drawing took, the bytes of the
page and how long it took to be made and to open. A picture of the graph is written to ``--out``.
"""

from __future__ import annotations

import argparse
import random
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tab import Tab, open_tab

from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.store import MemoryRecord, Store
from mgl.types import Document
from mgl.web.export import to_html
from mgl.web.layout import keep_positions

KINDS = ("entity", "event", "claim", "concept")
FRAMES = 120
MOVES = {
    "drag": """
        point("pointerdown", 300, 200);
        each = (n) => point("pointermove", 300 + (n % 60) * 3, 200 + (n % 40) * 2);
    """,
    "zoom": "each = (n) => wheel(n % 60 < 30 ? -60 : 60);",
    "zoomed in, drag": """
        for (let n = 0; n < 18; n++) wheel(-120);
        point("pointerdown", 300, 200);
        each = (n) => point("pointermove", 300 + (n % 60) * 3, 200 + (n % 40) * 2);
    """,
    "hover": "each = (n) => point('pointermove', 200 + (n * 37) % 400, 100 + (n * 53) % 300);",
}
SCRIPT = """(async () => {
    const graph = document.querySelector("#graph");
    const box = graph.getBoundingClientRect();
    const place = (x, y) => ({ clientX: box.left + x, clientY: box.top + y, bubbles: true });
    const point = (type, x, y) =>
        graph.dispatchEvent(new PointerEvent(type, { ...place(x, y), pointerId: 1 }));
    const wheel = (deltaY) =>
        graph.dispatchEvent(new WheelEvent("wheel", { ...place(300, 200), deltaY }));
    const frame = () => new Promise(requestAnimationFrame);
    let each;
    %MOVE%
    const [gaps, work] = [[], []];
    let last = await frame();
    for (let n = 0; n < %FRAMES%; n++) {
        const began = performance.now();
        each(n);
        const now = await frame();
        work.push(performance.now() - began);
        gaps.push(now - last);
        last = now;
    }
    point("pointerup", 300, 200);
    return { gaps, work };
})()"""


REPAINT = """(async () => {
    const step = document.querySelector("#step");
    const began = performance.now();
    step.value = step.max - 1;
    step.dispatchEvent(new Event("input"));
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return performance.now() - began;
})()"""


def make_view(count: int) -> GraphView:
    """A graph of this many nodes and nearly twice as many edges, the same each time."""
    chance = random.Random(20)
    sentences = [f"Person {n} met many others in town {n % 97}. " for n in range(count)]
    document = Document.from_text("made.txt", "".join(sentences))
    starts = np.cumsum([0, *map(len, sentences)]).tolist()
    spans = [document.span(starts[n], starts[n + 1] - 1) for n in range(count)]
    nodes = tuple(
        ViewNode(f"n{n}", KINDS[n % 4], f"Person {n}", sentences[n], spans[n], n * 100 // count)
        for n in range(count)
    )
    ends = [0]
    edges: list[ViewEdge] = []
    for n in range(1, count):
        for other in {chance.choice(ends), chance.choice(ends)}:
            step = n * 100 // count
            edges.append(ViewEdge(f"e{len(edges)}", f"n{n}", f"n{other}", "met", spans[n], step))
            ends += [n, other]
    return GraphView("made", "made", "none", document, (), 100, nodes, tuple(edges))


def make_again(view: GraphView) -> float:
    """Seconds that making the page takes once the store knows the places of its nodes."""
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "store.sqlite") as store:
        store.put_document(view.document)
        store.put_memory(MemoryRecord("made", "made", view.document.id, (), "none", {}, 0, 0))
        place = keep_positions(store, "made")
        to_html(view, place=place)
        began = time.monotonic()
        to_html(view, place=place)
        return time.monotonic() - began


def measure(tab: Tab) -> None:
    print(f"{'':16} {'frame p50':>10} {'p95':>7} {'drawing p50':>12} {'p95':>7}")
    for name, move in MOVES.items():
        said = tab.run(SCRIPT.replace("%MOVE%", move).replace("%FRAMES%", str(FRAMES)))
        tab.run("document.querySelector('#zoom-fit').click()")
        time.sleep(2)  # so that the whole graph is drawn again
        row = [float(np.percentile(said[kind], q)) for kind in ("gaps", "work") for q in (50, 95)]
        print(f"{name:16} {row[0]:10.1f} {row[1]:7.1f} {row[2]:12.1f} {row[3]:7.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    view = make_view(given.nodes)
    began = time.monotonic()
    page = to_html(view)
    made = time.monotonic() - began
    again = make_again(view)
    with TemporaryDirectory() as folder:
        path = (given.out or Path(folder)) / "graph.html"
        path.write_text(page, encoding="utf-8")
        print(f"{len(view.nodes)} nodes, {len(view.edges)} edges; {len(page.encode())} bytes")
        with open_tab(given.chromium, Path(folder)) as tab:
            began = time.monotonic()
            tab.show(path.absolute().as_uri())
            print(f"made in {made:.1f} s, again with its places kept in {again:.1f} s")
            print(f"opened in {time.monotonic() - began:.1f} s")
            print(f"all drawn anew in {tab.run(REPAINT):.0f} ms")
            measure(tab)
            if given.out:
                tab.take_picture(given.out / "graph.png")


if __name__ == "__main__":
    main()
