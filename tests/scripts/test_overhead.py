"""``scripts/bench/overhead.py``: each measurement, small."""

from __future__ import annotations

from pathlib import Path

import overhead


async def test_a_call_is_timed_beside_its_bare_request(tmp_path: Path) -> None:
    figures = await overhead.measure_call(5, tmp_path)
    assert figures["http_ms"] > 0
    assert figures["overhead_p50_ms"] == figures["mgl_ms"] - figures["http_ms"]
