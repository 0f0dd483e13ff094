from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from mgl.evaluation.report.plots import Plot, draw_plots
from mgl.evaluation.report.tables import compare_methods
from mgl.evaluation.runs.manifest import Method
from tests.evaluation.report.folders import Said, item, method, read_frame, write_run

ITEMS = [item("q0"), item("q1"), item("q2")]


def plots(
    folder: Path, *methods: Method, with_forest: bool = False, **more: Any
) -> dict[str, Plot]:
    said = {
        one.label: [
            Said({"exact_match": float(n == 0)}, more={k: v[n] for k, v in more.items()})
            for n in range(3)
        ]
        for one in methods
    }
    frame = read_frame(write_run(folder, methods, ITEMS, said))
    comparisons = compare_methods(frame) if with_forest else ()
    return {plot.name: plot for plot in draw_plots(frame, comparisons, "x")}


def words(plot: Plot) -> set[str]:
    return {each.text or "" for each in ET.fromstring(plot.svg).iter() if each.tag.endswith("text")}


def test_differences_and_costs_are_plotted_of_several(tmp_path: Path) -> None:
    memory = [{"tokens": 1000 * n, "nodes": 5 + n, "compaction_ratio": 0.1} for n in range(1, 4)]
    two = method("a"), method("b$x$")
    found = plots(tmp_path / "run", *two, memory=memory, with_forest=True)
    assert list(found) == ["x-differences", "x-cost", "x-compaction", "x-sizes"]
    assert "a − b$x$" in words(found["x-differences"])
    assert found["x-sizes"] == plots(tmp_path / "two" / "run", *two, memory=memory)["x-sizes"]
    assert plots(tmp_path / "one", method("a", k=1), with_forest=True) == {}


def test_a_score_is_plotted_by_the_option_that_methods_differ_in(tmp_path: Path) -> None:
    swept = [method(f"steps-{n}", "hgmem", steps=n, merge=True) for n in (3, 1, 2)]
    found = plots(tmp_path / "run", *swept, method("old", "hgmem"), method("naive-rag"))
    shown = words(found["x-hgmem-steps"])
    assert {"steps of hgmem", "exact match, %", "1", "2", "3"} <= shown
    assert "naive-rag" in shown, "another memory is a line across"
    assert "old" not in shown, "a run from before an option is on no line of it"


def test_no_row_of_a_figure_is_lost_that_differs_in_a_second_option(tmp_path: Path) -> None:
    """As GAM's Figure 3: windows have a size besides."""
    ways = [
        method("semantic", "gam", partition="semantic", window_tokens=512),
        method("session", "gam", partition="session", window_tokens=512),
        method("window-256", "gam", partition="window", window_tokens=256),
        method("window-512", "gam", partition="window", window_tokens=512),
        method("turns-3", "gam", partition="turns", window_tokens=512, window_turns=3),
    ]
    shown = words(plots(tmp_path / "run", *ways)["x-gam-partition"])
    assert {one.label for one in ways} <= shown
