"""A private event loop in a thread of its own: async inside, sync at the edge.

    >>> async def answer() -> int:
    ...     return 42
    >>> with Portal() as portal:
    ...     portal.run(answer)
    42

Because the loop is not the caller's, it works inside a notebook's running loop as well, and an
engine keeps its connections from one call to the next. Ctrl-C reaches the caller at once: the
task is cancelled and given ``GRACE_S`` seconds to put its things away.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from typing import Any, Final, Self, TypeVar

__all__ = ["Portal"]

ResultT = TypeVar("ResultT")
GRACE_S: Final = 2.0


class Portal:
    """Runs coroutines on its own loop, one caller at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="mgl-portal", daemon=True
        )
        self._thread.start()

    def run(self, make: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """The result of the coroutine that ``make`` gives, or what it raised."""
        future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        try:
            return future.result()
        except BaseException:
            if not future.done():
                self._cancel_all()
                wait([future], timeout=GRACE_S)
            raise

    def close(self) -> None:
        """Stop the loop; a thread that is stuck in a blocking call is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=GRACE_S)
        if not self._thread.is_alive():
            self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cancel_all(self) -> None:
        def cancel() -> None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()

        self._loop.call_soon_threadsafe(cancel)
