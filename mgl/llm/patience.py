"""Asking an engine again: after a failure that may pass, and while a server is away.

A server that answered before may be starting again: it is waited for, however often that takes.
Another failure that may pass is met with a number of retries. ``Patience.over`` asks again; who
asks in another way calls ``wait`` and says what came of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mgl.errors import EngineError, EngineLost

__all__ = ["Patience"]

_LONGEST_PAUSE_S = 5.0

ResultT = TypeVar("ResultT")

_log = logging.getLogger(__name__)


class Patience:
    """What is left of it for one call: ``outage_s`` from when its server is first away, and so many
    ``retries``. The pause between attempts doubles, with jitter."""

    def __init__(self, outage_s: float, pause_s: float, *, retries: int = 0) -> None:
        self._outage_s = outage_s
        self._pause_s = pause_s
        self._retries = retries
        self._until: float | None = None

    async def over(self, ask: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """What ``ask`` gives, asked again as long as patience lasts."""
        while True:
            try:
                return await ask()
            except EngineError as failure:
                await self.wait(failure)

    async def wait(self, failure: EngineError) -> None:
        """Wait a little before the next attempt; raises ``failure`` where there is to be none."""
        if isinstance(failure, EngineLost):
            self._check_time(failure)
        elif not failure.retryable or not self._retries:
            raise failure
        else:
            self._retries -= 1
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    def _check_time(self, lost: EngineLost) -> None:
        now = time.monotonic()
        if self._until is None:
            self._until = now + self._outage_s
            _log.warning("%s; it is waited for", lost.message)
        if now >= self._until:
            raise lost
