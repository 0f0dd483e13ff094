"""How often a tenant may ask: ``bucket = Bucket(600); bucket.take("ann")``."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from mgl.openai.errors import OverLimit

RATE: Final = 1200
"""Requests a minute of one tenant."""


class Bucket:
    """Lets each name do ``a_minute`` things a minute, as many at once; 0 sets no limit."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._a_minute = a_minute
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Count one request; OverLimit if there are too many."""
        if not self._a_minute:
            return
        now = self._clock()
        left, since = self._left.get(name, (float(self._a_minute), now))
        left = min(self._a_minute, left + (now - since) * self._a_minute / 60)
        if left < 1:
            raise OverLimit(
                429,
                f"more than {self._a_minute} requests a minute",
                hint="wait a moment, or start the server with --rate",
            )
        self._left[name] = (left - 1, now)
