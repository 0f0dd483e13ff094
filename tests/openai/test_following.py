"""``follow``: what a piece of work tells from any thread, in order, and what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from mgl.openai.listening import MOST_WAITING, follow

Tell = Callable[[int], None]


async def test_what_other_threads_tell_comes_in_order_before_the_result() -> None:
    async def work(tell: Tell) -> str:
        for number in range(50):
            await asyncio.to_thread(tell, number)
        return "done"

    async with follow(work) as (told, task):
        assert [number async for number in told] == [*range(50)]
        assert await task == "done"


async def test_one_who_does_not_read_misses_the_last_and_still_comes_to_the_end() -> None:
    async def work(tell: Tell) -> str:
        for number in range(2 * MOST_WAITING):
            tell(number)
        return "done"

    async with follow(work) as (told, task):
        assert await task == "done"
        assert [number async for number in told] == [*range(MOST_WAITING)]


async def test_an_error_is_the_tasks() -> None:
    async def work(tell: Tell) -> None:
        tell(1)
        raise ZeroDivisionError

    async with follow(work) as (told, task):
        assert [number async for number in told] == [1]
        with pytest.raises(ZeroDivisionError):
            await task


async def test_work_stops_when_nobody_follows_it_any_more() -> None:
    begun = asyncio.Event()

    async def work(tell: Tell) -> None:
        del tell
        begun.set()
        await asyncio.Event().wait()

    async with follow(work) as (_, task):
        await begun.wait()
    with pytest.raises(asyncio.CancelledError):
        await task
