"""Work on many items at once."""

from __future__ import annotations

import asyncio

import pytest

from mgl.llm.concurrency import for_each


async def test_items_are_taken_as_they_are_begun() -> None:
    taken: list[int] = []
    worked: list[int] = []

    def items() -> object:
        for number in range(20):
            taken.append(number)
            yield number

    async def work(number: int) -> None:
        assert len(taken) - len(worked) <= 3
        await asyncio.sleep(0)
        worked.append(number)

    await for_each(items(), work, at_once=3)  # type: ignore[arg-type]
    assert sorted(worked) == list(range(20))


async def test_an_error_ends_what_is_under_way() -> None:
    ended: list[str] = []

    async def work(number: int) -> None:
        if number == 1:
            raise ValueError("one")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(ValueError, match="one"):
        await for_each(range(9), work, at_once=3)
    assert ended == ["cancelled"] * 2
