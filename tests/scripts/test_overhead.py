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


async def test_calls_at_once_are_measured_beside_bare_requests(tmp_path: Path) -> None:
    figures = await overhead.measure_calls(8, tmp_path, levels=(2, 4))
    assert set(figures) == {"2", "4", "failed"}
    for own in (figures["2"], figures["4"]):
        assert own["ratio_to_http"] == own["http"]["cpu_ms"] / own["mgl"]["cpu_ms"]
        assert all(own[way]["calls_a_cpu_s"] > 0 for way in ("http", "http_many_pools", "mgl"))
