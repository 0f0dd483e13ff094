"""Progress, told to whoever waits for it: one observer for all requests of a lab.

with relay_to(queue.put_nowait):
    lab.ask(record, question)           # also from its threads and tasks
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

Hear = Callable[[dict[str, Any]], object]
"""Is given each event, from any thread."""

_HEAR: ContextVar[Hear | None] = ContextVar("hear", default=None)


@contextmanager
def relay_to(hear: Hear) -> Iterator[None]:
    """Relay what the work within reports to ``hear``."""
    token = _HEAR.set(hear)
    try:
        yield
    finally:
        _HEAR.reset(token)


def tell(event: dict[str, Any]) -> None:
    """Tell the one who hears now, if anybody does."""
    if (hear := _HEAR.get()) is not None:
        hear(event)


class Relay:
    """An observer that tells the one who hears now."""

    def progress(self, stage: str, done: int, total: int) -> None:
        tell({"stage": stage, "done": done, "total": total})

    def note(self, text: str) -> None:
        tell({"note": text})
