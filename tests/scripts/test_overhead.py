"""``scripts/bench/overhead.py``: each measurement, small."""

from __future__ import annotations

from pathlib import Path

import overhead
import pytest


@pytest.mark.parametrize(
    ("grouping", "stage"), [("model", "categorise"), ("likeness", "name_category")]
)
async def test_a_hierarchy_is_measured_at_two_sizes(
    grouping: str, stage: str, tmp_path: Path
) -> None:
    figures = await overhead.measure_hierarchy(200, tmp_path, grouping)
    small, large = figures["runs"]
    assert (small["layers"][0], large["layers"][0]) == (20, 200)
    assert large["calls"][stage] > small["calls"][stage] > 0
    assert large["layers"][-1] == 1


async def test_a_call_is_timed_beside_its_bare_request(tmp_path: Path) -> None:
    figures = await overhead.measure_call(5, tmp_path)
    assert figures["http_ms"] > 0
    assert figures["overhead_p50_ms"] == figures["mgl_ms"] - figures["http_ms"]


async def test_a_graph_is_measured_by_tenths(tmp_path: Path) -> None:
    figures = await overhead.measure_graph(20, tmp_path)
    assert figures["chunks"] >= 20
    assert figures["entities"] > 0
    assert figures["relations"] > 0
