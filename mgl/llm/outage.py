"""Waiting for a server that answered before and is away: it may be starting again.

``Outage.over`` asks again; who asks in another way calls ``wait`` and says what came of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mgl.errors import EngineLost

__all__ = ["Outage"]

_LONGEST_PAUSE_S = 5.0

ResultT = TypeVar("ResultT")

_log = logging.getLogger(__name__)


class Outage:
    """How long one call has waited for a server that is away."""

    def __init__(self, most_s: float, pause_s: float) -> None:
        self._most_s = most_s
        self._pause_s = pause_s
        self._until: float | None = None

    async def over(self, ask: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """What ``ask`` gives, asked again while the server is away."""
        while True:
            try:
                return await ask()
            except EngineLost as lost:
                await self.wait(lost)

    async def wait(self, lost: EngineLost) -> None:
        """Wait a little before the next attempt; raises ``lost`` when it took too long."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._most_s
            _log.warning("%s; it is waited for", lost.message)
        if now >= self._until:
            raise lost
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
