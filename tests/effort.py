"""How much processor time a piece of work may take, however busy the machine is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["within_cpu_seconds"]


@contextmanager
def within_cpu_seconds(limit: float) -> Iterator[None]:
    """Stop what takes more processor time of this process; code in C is stopped when it returns."""

    def stop(*_: object) -> None:
        raise AssertionError(f"more than {limit} seconds of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
