"""``scripts/bench/scale.py``, small."""

from __future__ import annotations

from pathlib import Path

import pytest
import scale

from mgl.retrieval.fakes import WordEmbedder


async def test_whole_processes_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "PROCESSES", 1)
    path = tmp_path / "mgl.sqlite"
    (row,) = await scale.measure("gam", [30], WordEmbedder(scale.DIMS), path, minutes=5)
    assert row["ask_ms"] > 0


@pytest.mark.parametrize("memory", list(scale.CONFIG))
async def test_a_growing_memory_is_measured_at_each_size(memory: str, tmp_path: Path) -> None:
    path = tmp_path / "mgl.sqlite"
    rows = await scale.measure(memory, [30, 60], WordEmbedder(), path, minutes=5)
    assert [row["turns"] for row in rows] == [30, 60]
    assert all(row["question_ms"] > 0 and row["bytes"] > 0 for row in rows)
    assert all(("append_ms" in row) == (memory != "turns") for row in rows)
