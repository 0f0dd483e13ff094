"""Calls in flight: shared, retried, done side by side, run from synchronous code, and awaited.

Nothing here bounds a call's time: ``mgl.llm.client`` sets the deadline.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import Future, wait
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Generic, ParamSpec, Self, TypeVar

from mgl.errors import EngineError, EngineLost

GRACE_S: Final = 0.6
_LONGEST_PAUSE_S: Final = 5.0

Item = TypeVar("Item")
ResultT = TypeVar("ResultT")
P = ParamSpec("P")

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Flight(Generic[ResultT]):
    task: asyncio.Task[ResultT]
    waiters: int = 0


class SharedCalls(Generic[ResultT]):
    """Runs a call once for everybody who asks for it while it is in flight. One event loop only.

    A call is cancelled when its last waiter leaves; the next caller starts it again.
    """

    def __init__(self) -> None:
        self._flights: dict[str, _Flight[ResultT]] = {}

    @asynccontextmanager
    async def join(
        self, key: str, start: Callable[[], Coroutine[Any, Any, ResultT]]
    ) -> AsyncIterator[tuple[asyncio.Future[ResultT], bool]]:
        """Wait within for the call with this key; also says whether it was in flight already."""
        flight = self._flights.get(key)
        shared = flight is not None
        if flight is None:
            flight = started = self._flights[key] = _Flight(asyncio.create_task(start()))
            started.task.add_done_callback(lambda _: self._remove(key, started))
        flight.waiters += 1
        try:
            yield asyncio.shield(flight.task), shared
        finally:
            flight.waiters -= 1
            if not flight.waiters and not flight.task.done():
                self._remove(key, flight)
                flight.task.cancel()
                await asyncio.wait([flight.task])

    def _remove(self, key: str, flight: _Flight[ResultT]) -> None:
        if self._flights.get(key) is flight:  # another call may have its key by now
            del self._flights[key]


class Retries:
    """The retries of one call: at most ``retries`` after retryable errors, and any number within
    ``outage_s`` seconds while a server that answered before is away. Pauses double, with jitter."""

    def __init__(self, outage_s: float, pause_s: float, *, retries: int = 0) -> None:
        self._outage_s = outage_s
        self._pause_s = pause_s
        self._retries = retries
        self._deadline: float | None = None

    async def run(self, call: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Make the call until it succeeds or no retry is left."""
        while True:
            try:
                return await call()
            except EngineError as failure:
                await self.pause(failure)

    async def pause(self, failure: EngineError) -> None:
        """Sleep before the next attempt, or raise ``failure`` if there is none."""
        if isinstance(failure, EngineLost):
            now = time.monotonic()
            if self._deadline is None:
                self._deadline = now + self._outage_s
                _log.warning("%s; waiting for it", failure.message)
            if now >= self._deadline:
                raise failure
        elif not failure.retryable or not self._retries:
            raise failure
        else:
            self._retries -= 1
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)


async def for_each(
    items: Iterable[Item], work: Callable[[Item], Awaitable[None]], *, at_once: int
) -> None:
    """Do ``work`` on every item, on at most ``at_once`` together; items are drawn as needed.

    The first exception ends it: no further item is started, and those under way are cancelled.
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


def make_awaitable(method: Callable[P, ResultT]) -> Callable[P, Coroutine[Any, Any, ResultT]]:
    """Make the awaitable form of a method: it works in a thread while the caller's loop goes on.

    A caller that is cancelled stops waiting; the work goes on to its end.
    """

    async def run(*arguments: P.args, **named: P.kwargs) -> ResultT:
        return await asyncio.to_thread(method, *arguments, **named)

    run.__doc__ = method.__doc__
    return run


class StopSignal:
    """Lets one thread stop what another runs in a portal.

    stop = StopSignal()
    portal.run(lambda: stop.guard(work))    # raises concurrent.futures.CancelledError
    stop.ask()                              # from anywhere, before or while it runs
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self._cancel: Callable[[], object] | None = None

    def ask(self) -> None:
        """Have the work cancelled; its caller waits until it has cleaned up."""
        with self._lock:
            self._asked = True
            if self._cancel is not None:
                self._cancel()

    async def guard(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Do the work, unless and until it is to be stopped."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        with self._lock:
            if self._asked:
                raise asyncio.CancelledError
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        try:
            return await work()
        finally:
            with self._lock:
                self._cancel = None


class Portal:
    """An event loop in its own thread, for synchronous callers: async inside, sync at the edge.

        >>> async def answer() -> int:
        ...     return 42
        >>> with Portal() as portal:
        ...     portal.run(answer)
        42

    It works within a notebook's running loop, and an engine keeps its connections from one call to
    the next. Ctrl-C reaches the caller at once: the task is cancelled, once, and has ``GRACE_S``
    seconds to clean up, and so has each ``finish`` and the loop itself.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._interrupted = False
        self._closed = False
        self._scheduling = threading.Lock()
        self._thread = threading.Thread(target=self._run_loop, name="mgl-portal", daemon=True)
        self._thread.start()

    def run(self, start: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """Run a coroutine to its result; one caller at a time, and none from within the loop."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("the portal's own loop cannot wait for itself")
        self._interrupted = False
        begun = list[Coroutine[Any, Any, ResultT]]()

        def begin() -> Coroutine[Any, Any, ResultT]:
            begun.append(start())
            return begun[0]

        future: Future[ResultT] | None = None
        try:
            future = self.submit(begin)  # an interrupt may come before it returns
            return future.result()
        except BaseException:
            if begun and (future is None or not future.done()):
                self._interrupted = True
                ending = asyncio.run_coroutine_threadsafe(_cancel(begun[0]), self._loop)
                wait([ending], timeout=GRACE_S)
            raise

    def submit(self, start: Callable[[], Coroutine[Any, Any, ResultT]]) -> Future[ResultT]:
        """Begin a coroutine; the future that is returned has its result, and cancels it."""
        with self._scheduling:
            if self._closed:
                raise RuntimeError("the portal is closed")
            return asyncio.run_coroutine_threadsafe(start(), self._loop)

    def finish(self, start: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a clean-up to its end, after an interrupt for ``GRACE_S`` seconds at most."""
        future = asyncio.run_coroutine_threadsafe(start(), self._loop)
        wait([future], timeout=GRACE_S if self._interrupted else None)
        if future.done():
            future.result()

    def close(self) -> None:
        """Cancel what still runs and stop the loop; a thread stuck in a blocking call is left
        behind."""
        with self._scheduling:
            was_closed, self._closed = self._closed, True
        if not was_closed and self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop)
        self._thread.join(timeout=2 * GRACE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_loop(self) -> None:
        """Run the loop until it is stopped, however late, and free what it holds."""
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    async def _end(self) -> None:
        """Cancel all tasks, also those that nobody waits for, and stop when they have ended."""
        if tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=GRACE_S)
        self._loop.stop()


async def _cancel(coroutine: Coroutine[Any, Any, object]) -> None:
    """Cancel the task of the running loop that runs a coroutine, and wait for its end."""
    for task in asyncio.all_tasks():
        if task.get_coro() is coroutine:
            task.cancel()
            await asyncio.wait([task])
