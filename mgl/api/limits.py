"""What a tenant may ask of a server: how often (``Bucket(600).take("ann")``), and how much."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mgl.openai.errors import OverLimit
from mgl.openai.listening import MOST_BYTES


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests a minute of one tenant, 0 for any number, and the bytes of a body."""

    rate: int = 1200
    most_bytes: int = MOST_BYTES


USUAL: Final = Limits()


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
