"""How much a request may ask of the server: bodies, their pace, and how many there may be.

body = await read_limited(request, most=MOST_BYTES)
bucket = Bucket(600); bucket.take("ann")
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from mgl.peers.wire import OverLimit

if TYPE_CHECKING:
    from starlette.requests import Request

RATE: Final = 1200
"""Requests a minute of one tenant."""
MOST_BYTES: Final = 32 * 1024 * 1024
BODY_S: Final = 60.0
"""Seconds in which a body has to come."""


class Bucket:
    """Lets each name do ``a_minute`` things a minute, as many at once; 0 sets no limit."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._a_minute = a_minute
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Count one; OverLimit where there are too many."""
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


async def read_limited(
    request: Request, *, most: int = MOST_BYTES, within: float = BODY_S
) -> bytes:
    """Read a body of at most ``most`` bytes in ``within`` seconds; OverLimit otherwise."""
    large = OverLimit(
        413, f"the body has more than {most:,} bytes", hint="send it in parts, or from a terminal"
    )
    if int(request.headers.get("content-length") or 0) > most:
        raise large
    body = bytearray()
    try:
        async with asyncio.timeout(within):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise large
    except TimeoutError as error:
        raise OverLimit(
            408, f"the body did not come within {within:g} seconds", hint="send it at once"
        ) from error
    return bytes(body)
