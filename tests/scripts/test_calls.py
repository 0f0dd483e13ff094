"""``scripts/bench/calls.py``, small."""

from __future__ import annotations

from pathlib import Path

import calls
import pytest


async def test_calls_at_once_are_measured_beside_bare_requests(tmp_path: Path) -> None:
    figures = await calls.measure(8, tmp_path, levels=(4,))
    assert set(figures) == {"4"}
    for own in figures.values():
        assert own["ratio_to_http"] == own["http"]["cpu_ms"] / own["mgl"]["cpu_ms"]
        for way in ("http", "http_many_pools", "mgl"):
            assert own[way]["calls_a_cpu_s"] == pytest.approx(1000 / own[way]["cpu_ms"])
