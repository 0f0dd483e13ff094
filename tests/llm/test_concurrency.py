from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mgl.llm.base import Completion, Message, Request
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.concurrency import Limiter, Portal, for_each
from mgl.llm.fakes import SchemaEngine

MOST = 32


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def telling(
    waiting: Callable[[], Awaitable[int | None]], clock: Clock, untold: int = 16
) -> Limiter:
    return Limiter(untold, waiting=waiting, most=MOST, clock=clock)


async def settle() -> None:
    for _ in range(6):
        await asyncio.sleep(0)


class Server:
    """Works on so many requests at once and ends one a tick; those beyond wait, and it says so."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.inside: list[asyncio.Future[None]] = []

    async def count_waiting(self) -> int | None:
        return max(0, len(self.inside) - self.takes)

    async def answer(self) -> None:
        done = asyncio.get_running_loop().create_future()
        self.inside.append(done)
        await done

    def tick(self) -> None:
        self.inside.pop(0).set_result(None)


async def limits(server: Server, ticks: int) -> list[int]:
    """The limit after each tick, where there is always more to be asked and a call takes 2 s."""
    clock = Clock()
    slots = telling(server.count_waiting, clock)
    seen: list[int] = []

    async def work() -> None:
        while True:
            async with slots:
                await server.answer()

    workers = [asyncio.create_task(work()) for _ in range(3 * MOST)]
    for _ in range(ticks):
        await settle()
        clock.now += 2 / server.takes
        server.tick()
        seen.append(slots.limit)
    for worker in workers:
        worker.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    assert slots.taken == 0
    return seen


@pytest.mark.parametrize("takes", [1, 2, 7, 16, 24])
async def test_the_limit_comes_to_what_the_server_takes_and_stays_near(takes: int) -> None:
    seen = await limits(Server(takes), 40 * takes)
    assert all(takes <= limit <= takes + 3 for limit in seen[-20 * takes :]), seen


Step = st.tuples(
    st.sampled_from(["enter", "enter", "enter", "leave", "leave", "fail", "cancel", "cancel"]),
    st.integers(0, 50),
    st.integers(0, 3),  # turns of the event loop before the next step: few, and steps race
)


class Watched(Limiter):
    """Sees every slot that is given: only while fewer are taken than the limit of that moment."""

    broken = False

    def _serve(self) -> None:
        before = self.taken
        super()._serve()
        self.broken |= not before <= self.taken <= max(before, self.limit) <= MOST


@settings(max_examples=300, deadline=None)
@given(
    steps=st.lists(Step, min_size=20, max_size=80),
    told=st.lists(st.none() | st.integers(0, 4), min_size=1),
    untold=st.integers(1, 3),
)
def test_never_above_the_limit_never_a_lost_slot_always_progress(
    steps: list[tuple[str, int, int]], told: list[int | None], untold: int
) -> None:
    async def run() -> None:
        clock = Clock()
        answers = iter(told * 200)

        async def waiting() -> int | None:
            return next(answers)

        slots = Watched(untold, waiting=waiting, most=MOST, clock=clock)
        inside: dict[asyncio.Task[None], asyncio.Future[None]] = {}
        waiters: list[asyncio.Task[None]] = []

        async def call() -> None:
            me = asyncio.current_task()
            assert me is not None
            async with slots:
                inside[me] = asyncio.get_running_loop().create_future()
                try:
                    await inside[me]
                finally:
                    del inside[me]

        def idle() -> list[asyncio.Task[None]]:
            return [task for task in waiters if not task.done() and task not in inside]

        for kind, which, turns in steps:
            clock.now += 0.4
            open_ = [future for future in inside.values() if not future.done()]
            if kind == "enter":
                waiters.append(asyncio.create_task(call()))
            elif kind == "cancel" and waiters:
                (idle() or waiters)[0 if which % 2 else -1].cancel()
            elif kind == "leave" and open_:
                open_[which % len(open_)].set_result(None)
            elif kind == "fail" and open_:
                open_[which % len(open_)].set_exception(ValueError("the call failed"))
            for _ in range(turns):
                await asyncio.sleep(0)
            if turns == 3:
                await settle()
                assert slots.taken == len(inside), "every slot taken is a call inside"
                assert not idle() or slots.taken >= slots.limit, "nobody waits beside a free slot"
            assert slots.limit >= 1
        await settle()
        while inside:
            for future in inside.values():
                if not future.done():
                    future.set_result(None)
            await settle()
        assert not idle()
        await asyncio.gather(*waiters, return_exceptions=True)
        assert slots.taken == 0
        assert not slots.broken

    asyncio.run(run())


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
