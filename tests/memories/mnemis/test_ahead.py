"""Episodes are asked about ahead of their turn: how many, in which order, and what is left over."""

from __future__ import annotations

import asyncio

import pytest

from mgl.memories.mnemis.ahead import AT_ONCE, Ahead
from mgl.memories.mnemis.nodes import Episode
from mgl.types import Span

EPISODES = [
    Episode(number, Span("talk", number, number + 1)) for number in range(3, 3 + 3 * AT_ONCE)
]


async def test_each_gets_its_own_and_no_more_than_some_are_under_way() -> None:
    running = most = 0

    async def ask(episode: Episode) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001 * (episode.number % 3))
        running -= 1
        return episode.number

    async with Ahead(EPISODES, ask) as ahead:
        given = [await ahead.of(episode) for episode in EPISODES]
    assert given == [episode.number for episode in EPISODES]
    assert most == AT_ONCE


async def test_what_nobody_waited_for_is_cancelled() -> None:
    begun: list[int] = []
    ended: list[int] = []

    async def ask(episode: Episode) -> None:
        begun.append(episode.number)
        if episode is not EPISODES[0]:
            await asyncio.sleep(60)
        ended.append(episode.number)

    async with Ahead(EPISODES, ask) as ahead:
        await ahead.of(EPISODES[0])
    assert len(begun) == AT_ONCE
    assert ended == [EPISODES[0].number]


async def test_a_failure_comes_with_its_own_episode() -> None:
    async def ask(episode: Episode) -> int:
        if episode.number > EPISODES[0].number:
            raise RuntimeError(episode.number)
        return episode.number

    async with Ahead(EPISODES, ask) as ahead:
        assert await ahead.of(EPISODES[0]) == EPISODES[0].number
        with pytest.raises(RuntimeError, match=str(EPISODES[1].number)):
            await ahead.of(EPISODES[1])
