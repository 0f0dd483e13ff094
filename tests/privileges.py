from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["unprivileged"]


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write anything, so drop to an ordinary user for the length of a test."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
