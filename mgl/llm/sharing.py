"""Work that several ask for at once is done once, and all of them get what came of it.

    calls: Sharing[str] = Sharing()
    reply, shared = await calls.join("key", lambda: send("a prompt"))

Work that nobody waits for any more is cancelled. Who asks for it from then on begins it anew: a
work that ends takes its time, and its end is no answer to them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

__all__ = ["Sharing"]

ResultT = TypeVar("ResultT")


@dataclass(slots=True, eq=False)
class _Flight(Generic[ResultT]):
    task: asyncio.Task[ResultT]
    waiters: int = 0


class Sharing(Generic[ResultT]):
    """What is under way, by its key; of one event loop."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[ResultT]] = {}

    async def join(
        self, key: str, begin: Callable[[], Coroutine[Any, Any, ResultT]]
    ) -> tuple[ResultT, bool]:
        """What comes of the work under this key, and whether it was under way already."""
        flight = self._flights.get(key)
        shared = flight is not None
        if flight is None:
            flight = self._begun(key, begin())
        flight.waiters += 1
        try:
            return await asyncio.shield(flight.task), shared
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                self._leave(key, flight)
                flight.task.cancel()
                await asyncio.wait([flight.task])

    def _begun(self, key: str, work: Coroutine[Any, Any, ResultT]) -> _Flight[ResultT]:
        flight = self._flights[key] = _Flight(asyncio.create_task(work))
        flight.task.add_done_callback(lambda _: self._leave(key, flight))
        return flight

    def _leave(self, key: str, flight: _Flight[ResultT]) -> None:
        """Let nobody join a flight any more; another may have its key by now."""
        if self._flights.get(key) is flight:
            del self._flights[key]
