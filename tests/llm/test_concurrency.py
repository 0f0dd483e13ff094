from __future__ import annotations

import asyncio
import os
import signal
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import pytest

from mgl.llm.base import Completion, Message, Request
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.concurrency import Portal, SharedCalls, for_each
from mgl.llm.fakes import SchemaEngine
from tests.patience import PATIENCE_S


async def test_clients_side_by_side_share_the_slots_and_record_each_for_itself() -> None:
    class Counts(SchemaEngine):
        now = most = 0

        async def generate(self, request: Request) -> Completion:
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.001)
            self.now -= 1
            return await super().generate(request)

    engine, logs = Counts(), [MemoryCallLog() for _ in range(4)]
    first = Client(engine, logs[0], Policy(concurrency=3))
    clients = [first, *(first.beside(log) for log in logs[1:])]
    await asyncio.gather(
        *(
            client.complete([Message("user", f"{index} {n}")], stage="s")
            for index, client in enumerate(clients)
            for n in range(5)
        )
    )
    assert engine.most == 3
    assert [len(log.records) for log in logs] == [5, 5, 5, 5]
    assert [client.usage()["s"].calls for client in clients] == [5, 5, 5, 5]


# Work on many items.


async def test_an_error_ends_what_is_under_way() -> None:
    ended: list[str] = []

    async def work(number: int) -> None:
        if number == 1:
            raise ValueError("one")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with pytest.raises(ValueError, match="one"):
        await for_each(range(9), work, at_once=3)
    assert ended == ["cancelled"] * 2


# An event loop in a thread.


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


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_cancels_a_shared_call_once_so_that_it_can_clean_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A second cancellation left its connection open, and the next request waited for it."""
    monkeypatch.setattr("mgl.llm.concurrency.GRACE_S", PATIENCE_S)
    calls, events = SharedCalls[None](), list[str]()

    async def call() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.05)
            events.append("cleaned up")

    async def ask() -> None:
        async with calls.join("key", call) as (answer, _):
            await answer

    with Portal() as portal:
        with pytest.raises(KeyboardInterrupt):
            portal.run(ask)
        assert events == ["cleaned up"]


def test_an_interrupt_cancels_a_task_that_is_only_just_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that came before the task's future was at hand left the task running."""
    monkeypatch.setattr("mgl.llm.concurrency.GRACE_S", PATIENCE_S)
    submit, started, events = Portal.submit, threading.Event(), list[str]()

    def interrupted(portal: Portal, start: Any) -> None:
        submit(portal, start)
        started.wait(PATIENCE_S)
        raise KeyboardInterrupt

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            events.append("cleaned up")

    with Portal() as portal:
        monkeypatch.setattr(Portal, "submit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            portal.run(work)
        assert events == ["cleaned up"]


def test_a_task_stuck_in_native_code_does_not_hold_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mgl.llm.concurrency.GRACE_S", 0.05)
    release, started, ended = threading.Event(), threading.Event(), threading.Event()

    async def stuck() -> None:
        started.set()
        release.wait()
        ended.set()

    def interrupted(self: object, timeout: float | None = None) -> None:
        del self, timeout
        started.wait()
        raise KeyboardInterrupt

    monkeypatch.setattr("concurrent.futures.Future.result", interrupted)
    portal = Portal()
    with pytest.raises(KeyboardInterrupt):
        portal.run(stuck)
    portal.close()
    assert not ended.is_set()
    release.set()
    portal._thread.join(PATIENCE_S)
    assert portal._loop.is_closed()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_portal_whose_loop_was_ended_by_a_task_closes_quietly() -> None:
    async def leave() -> None:
        raise SystemExit

    portal = Portal()
    portal.submit(leave)
    portal._thread.join(PATIENCE_S)
    portal.close()
    assert portal._loop.is_closed()


def test_closing_ends_what_another_thread_runs_and_refuses_what_comes_after() -> None:
    begun = threading.Event()

    async def wait_for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    portal = Portal()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(portal.run, wait_for_ever)
        begun.wait()
        portal.close()
        with pytest.raises(CancelledError):
            running.result()
        with pytest.raises(RuntimeError, match="closed"):
            portal.run(wait_for_ever)


def test_closing_ends_what_nobody_waits_for() -> None:
    ended = threading.Event()

    async def wait_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def begin() -> None:
        held.append(asyncio.create_task(wait_for_ever()))
        await asyncio.sleep(0)

    held: list[asyncio.Task[None]] = []
    with Portal() as portal:
        portal.run(begin)
    assert ended.is_set()
    assert held[0].cancelled()
