"""The names of the next episodes are asked for while one is taken in.

They are read off the source alone, where all else about an episode needs the state before it. So a
server has some calls at once, and an episode waits for fewer one after the other (ours).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Generic, Self, TypeVar

from mgl.memories.mnemis.nodes import Episode

__all__ = ["AT_ONCE", "Ahead"]

AT_ONCE: Final = 8
"""Episodes that are asked about at once, the one that is awaited among them."""

ResultT = TypeVar("ResultT")


class Ahead(Generic[ResultT]):
    """What ``ask`` gives for each of some episodes, which are awaited in their order. Leaving it
    cancels what nobody waited for."""

    def __init__(
        self, episodes: Sequence[Episode], ask: Callable[[Episode], Coroutine[Any, Any, ResultT]]
    ) -> None:
        self._rest = iter(episodes)
        self._ask = ask
        self._asked: dict[int, asyncio.Task[ResultT]] = {}

    async def of(self, episode: Episode) -> ResultT:
        """What was given for the next episode, or what was raised."""
        for following in self._rest:
            self._asked[following.number] = asyncio.create_task(self._ask(following))
            if len(self._asked) == AT_ONCE:
                break
        return await self._asked.pop(episode.number)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
