"""``scripts/bench/scale.py``, small."""

from __future__ import annotations

from pathlib import Path

import pytest
import scale

from mgl.retrieval.fakes import WordEmbedder


@pytest.mark.parametrize("memory", list(scale.CONFIG))
async def test_a_growing_memory_is_measured_at_each_size(memory: str, tmp_path: Path) -> None:
    path = tmp_path / "mgl.sqlite"
    rows = await scale.measure(memory, [30, 60], WordEmbedder(), path, minutes=5)
    assert [row["turns"] for row in rows] == [30, 60]
    assert all(row["question_ms"] > 0 and row["bytes"] > 0 for row in rows)
    assert all(("append_ms" in row) == (memory != "turns") for row in rows)
