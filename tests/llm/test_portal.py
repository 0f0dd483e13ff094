from __future__ import annotations

import asyncio
import threading
import time

import pytest

from mgl.llm.concurrency import Portal


def test_results_and_errors_come_back_and_the_loop_stays_the_same() -> None:
    async def loop_id() -> int:
        return id(asyncio.get_running_loop())

    async def fail() -> None:
        raise ValueError("no")

    with Portal() as portal:
        first = portal.run(loop_id)
        with pytest.raises(ValueError, match="no"):
            portal.run(fail)
        assert portal.run(loop_id) == first


async def test_it_works_where_a_loop_runs_already() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    with Portal() as portal:
        assert portal.run(answer) == 42


def test_an_interrupt_cancels_the_task_and_waits_for_its_clean_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    started = threading.Event()

    async def long() -> None:
        started.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
            events.append("cleaned up")
            raise

    def interrupted(self: object, timeout: float | None = None) -> None:
        del self, timeout
        started.wait(5)
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    with Portal() as portal, pytest.raises(KeyboardInterrupt):
        portal.run(long)
    assert events == ["cleaned up"]


def test_a_task_stuck_in_native_code_does_not_hold_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mgl.llm.concurrency.GRACE_S", 0.05)
    release, started = threading.Event(), threading.Event()

    async def stuck() -> None:
        started.set()
        release.wait(30)

    def interrupted(self: object, timeout: float | None = None) -> None:
        del self, timeout
        started.wait(5)
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    began = time.monotonic()
    portal = Portal()
    with pytest.raises(KeyboardInterrupt):
        portal.run(stuck)
    portal.close()
    assert time.monotonic() - began < 5
    release.set()
    portal.close()
