"""How many calls are in flight: as many as the server takes without queueing.

    slots = Limiter(16, waiting=engine.waiting)
    async with slots:
        completion = await engine.generate(request)

Where the server tells how many requests wait in it, the limit starts low and grows by one with
each call that finishes while every slot is taken: at most to its double from one look to the next,
and by one a look once a queue was seen. It holds when some wait, and shrinks when some still wait
at the next look. (One look is not enough: a server that has a long prompt to read lets others wait
for a moment.) Where nobody tells, the limit is the number that the engine names: latencies alone
do not say whether a slow reply is a long one or a queued one, so they are not guessed at. A limit
that the caller fixed stays as it is.

Waiters are served in order, and one that is cancelled leaves no slot taken. It bounds no time:
``mgl.llm.client`` gives each call its deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Self

from mgl.errors import MglError

__all__ = ["LOOK_SECONDS", "MOST", "START", "Limiter"]

START: Final = 4
MOST: Final = 256
LOOK_SECONDS: Final = 1.0

Waiting = Callable[[], Awaitable[int | None]]


class Limiter:
    """Slots for calls in flight. Use it from one event loop.

    ``untold`` is the limit where ``waiting`` cannot tell, or where there is no ``waiting``.
    """

    def __init__(
        self,
        untold: int,
        *,
        waiting: Waiting | None = None,
        most: int = MOST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = untold if waiting is None else min(START, untold)
        self.taken = 0
        self._untold = untold
        self._most = max(most, untold)
        self._waiting = waiting
        self._clock = clock
        self._next_look = clock()
        self._queue: deque[asyncio.Future[None]] = deque()
        self._told = False
        self._full = False
        self._grows_to = 0

    async def __aenter__(self) -> Self:
        await self._look()
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._queue.remove(turn)
            else:
                self._free()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.taken >= self.limit < self._grows_to:
            self.limit += 1
        self._free()

    def _free(self) -> None:
        self.taken -= 1
        self._serve()

    def _serve(self) -> None:
        """Hand free slots to those who wait, in order."""
        for turn in list(self._queue):
            if self.taken >= self.limit:
                return
            if not turn.done():
                self.taken += 1
                turn.set_result(None)
                self._queue.remove(turn)

    async def _look(self) -> None:
        """Ask how many wait, if it is time to; one asks, the others go on."""
        if self._waiting is None or self._clock() < self._next_look:
            return
        self._next_look = float("inf")
        try:
            queued = await self._waiting()
        except MglError:
            queued = None  # whatever is wrong, the call itself meets it and says it
        finally:
            self._next_look = self._clock() + LOOK_SECONDS
        self._hear(queued)
        self._serve()

    def _hear(self, queued: int | None) -> None:
        again = self._told and self._grows_to == 0
        self._grows_to = 0
        if queued is None:
            self.limit = self.limit if self._told else self._untold
        elif queued:
            self._full = True
            if again and self.taken <= self.limit:  # else the last shrinking is under way yet
                self.limit -= min(queued, max(1, self.limit // 4), self.limit - 1)
        else:
            self._grows_to = min(self._most, self.limit + (1 if self._full else self.limit))
        self._told = self._told or queued is not None
