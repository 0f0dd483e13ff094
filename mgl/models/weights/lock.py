"""A lock that one process holds at a time, by a file; the system frees it if the process dies."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["exclusive"]

_POLL_SECONDS = 0.25


@contextmanager
def exclusive(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock while the body runs; ``waiting`` is called each time it is still taken."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as handle:
        while not _take(handle.fileno()):
            waiting()
            time.sleep(_POLL_SECONDS)
        yield  # closing the file frees the lock


def _take(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True
