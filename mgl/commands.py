"""Another program run to its end, and what it said: for looking, not for work that takes long."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

__all__ = ["run"]


def run(command: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """What a command wrote and its exit code; it is given no input.

    Raises OSError where it cannot be started, subprocess.TimeoutExpired where it does not end.
    """
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )
