"""What the wheel is built of: hatchling leaves out what git ignores, tracked or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SHIPPED = ("mgl", "models", "serving", "eval", "examples")


def test_no_file_that_ships_is_ignored() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    tracked = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", *SHIPPED], check=True, capture_output=True
    )
    assert b"mgl/evaluation/runs/runner.py" in tracked.stdout.split(b"\0")
    ignored = subprocess.run(
        ["git", "-C", ROOT, "check-ignore", "--no-index", "-z", "--stdin"],
        input=tracked.stdout,
        capture_output=True,
        check=False,  # 1: none is
    )
    assert (ignored.returncode, ignored.stdout) == (1, b"")
