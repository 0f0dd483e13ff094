"""``scripts/bench/scale.py`` and ``crash.py``, small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import scale

from mgl.retrieval.fakes import WordEmbedder

CRASH = Path(__file__).parents[2] / "scripts" / "bench" / "crash.py"


@pytest.mark.parametrize("memory", list(scale.CONFIG))
async def test_a_growing_memory_is_measured_at_each_size(memory: str, tmp_path: Path) -> None:
    path = tmp_path / "mgl.sqlite"
    rows = await scale.measure(memory, [30, 60], WordEmbedder(), path, minutes=5)
    assert [row["turns"] for row in rows] == [30, 60]
    assert all(row["question_ms"] > 0 and row["bytes"] > 0 for row in rows)
    assert all(("append_ms" in row) == (memory != "turns") for row in rows)


@pytest.mark.slow
@pytest.mark.parametrize("memory", ["mindgraph", "hgmem", "gam", "mnemis"])
def test_a_killed_memory_loses_nothing_and_pays_nothing_twice(memory: str) -> None:
    command = [sys.executable, str(CRASH), "--points", "5", "--memory", memory]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
