"""Work on many items at once, each begun when there is room for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

__all__ = ["each"]

Item = TypeVar("Item")


async def each(
    items: Iterable[Item], work: Callable[[Item], Awaitable[None]], *, at_once: int
) -> None:
    """Do ``work`` on every item, on ``at_once`` of them at most; the items are taken as they are
    begun, so that they need not be there all together.

    What ``work`` raises ends it all: nothing more is begun, and what is under way is cancelled.
    """
    rest = iter(items)

    async def worker() -> None:
        for item in rest:
            await work(item)

    workers = [asyncio.create_task(worker()) for _ in range(at_once)]
    try:
        await asyncio.gather(*workers)
    finally:
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
