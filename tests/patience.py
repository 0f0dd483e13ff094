"""How long a test waits before it fails: long enough for any machine, so that it never hangs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

PATIENCE_S: Final = 300.0


def wait_until(true: Callable[[], object]) -> None:
    """Return once it is true, of a process or a file that tells nobody when it changes."""
    until = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < until, "it did not come to that in time"
        time.sleep(0.02)


async def until(true: Callable[[], object]) -> None:
    """Return once it is true, of a process or a thread, while this loop goes on."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
