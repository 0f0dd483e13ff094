"""The run's side of a cluster: each unit goes to the worker with the fewest of them.

A worker that dies is started again by Ray, and its units with it, a few times; what was logged of
their calls is replayed. A unit gives one record however often it was started: the run adds it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from mgl.cluster.actors import WORKER, Home, Worker
from mgl.errors import EngineUnavailable, MglError, ResourceError, UsageError
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import BuildRecord, Record, VerdictRecord
from mgl.evaluation.runs.units import (
    Ask,
    Build,
    Executor,
    OpenExecutor,
    Workplace,
    remove_store,
)
from mgl.lab.model import ModelChoice
from mgl.llm.engines.recorded import ModelFacts
from mgl.observer import Observer

__all__ = ["shard"]

RETRIES: Final = 3  # of one unit, as a unit may be what kills its workers
POLL_S: Final = 1.0
READY_S: Final = 120.0


def shard(
    ray: Any,
    database: Path,
    choice: Callable[[str], ModelChoice],
    urls: Sequence[str],
    observer: Observer,
    *,
    concurrency: int,
) -> OpenExecutor:
    """Return what opens executors over a connected cluster, with one worker per processor but at
    most ``concurrency``, which is how many units are worked on at once by all.

    ``database`` is the home's store. ``choice`` says how a profile's model is opened; the workers
    take ``urls`` in turn, or look for a server on their machine if there are none. UsageError for a
    model that no server runs, and for more servers than workers.
    """

    @contextmanager
    def open_executor(place: Workplace) -> Iterator[Executor]:
        facts = place.facts
        if facts.engine != "openai":
            raise UsageError(
                f"the workers of a cluster use model servers, and {facts.profile} would run in "
                f"their processes ({facts.engine})",
                hint="start servers (`mgl serve`), and give --base-url URL[,URL…]",
            )
        count = max(1, min(concurrency, int(ray.cluster_resources().get("CPU", 0))))
        if len(urls) > count:
            raise UsageError(
                f"there are {len(urls)} servers and {count} workers",
                hint="raise --concurrency, or add machines: a worker uses one server",
            )
        home, name = _start_home(ray, database)
        own = [urls[number % len(urls)] if urls else None for number in range(count)]
        options = choice(facts.profile), facts, place.owner
        workers = _start_workers(ray, name, options, own, concurrency)
        try:
            _wait_ready(ray, workers)
            observer.note(f"{count} workers of a Ray cluster")
            with redirect_stdout(sys.stderr):  # where Ray reports workers that died
                yield _Sharded(ray, home, workers, observer)
        finally:
            for one in (*workers, home):
                ray.kill(one)

    return open_executor


def _start_home(ray: Any, database: Path) -> tuple[Any, str]:
    """Start the home on this machine; the actor, and its name."""
    here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
        ray.get_runtime_context().get_node_id(), soft=False
    )
    name = f"mgl-home-{uuid4().hex}"
    options = {"max_restarts": -1, "max_task_retries": -1, "num_cpus": 0}
    actor = ray.remote(Home).options(name=name, scheduling_strategy=here, **options)
    return actor.remote(database), name


def _start_workers(
    ray: Any,
    home: str,
    options: tuple[ModelChoice, ModelFacts, str | None],
    urls: Sequence[str | None],
    concurrency: int,
) -> list[Any]:
    """Start one worker per URL, or None for a server that it finds itself; ``options`` are those
    of ``Worker``."""
    choice, facts, owner = options
    actor = ray.remote(Worker).options(
        num_cpus=1,
        max_concurrency=concurrency,
        scheduling_strategy="SPREAD",
        max_restarts=-1,
        max_task_retries=RETRIES,
    )
    choice = replace(
        choice,
        context_tokens=facts.context_tokens,
        embedder=facts.embedder,
        reranker=facts.reranker,
    )
    choices = [choice if url is None else replace(choice, base_url=url) for url in urls]
    return [actor.remote(home, one, facts, owner) for one in choices]


def _wait_ready(ray: Any, workers: Sequence[Any]) -> None:
    references = [worker.ready.remote() for worker in workers]
    ready, late = ray.wait(references, num_returns=len(references), timeout=READY_S)
    if late:
        raise ResourceError(
            f"{len(late)} of {len(workers)} workers found no free processor of the cluster in "
            f"{READY_S:.0f} s",
            hint="wait until its other work has ended, or lower --concurrency",
        )
    ray.get(ready)


class _Sharded:
    """An ``Executor``."""

    def __init__(self, ray: Any, home: Any, workers: Sequence[Any], observer: Observer) -> None:
        self._ray, self._home, self._workers = ray, home, workers
        self._observer = observer
        self._in_flight = [0] * len(workers)
        self._bases: dict[Path, Any] = {}

    async def build(self, work: Build, path: Path, observer: Observer) -> BuildRecord:
        name = f"{work.method.label}\0{work.name}"
        record: BuildRecord
        record, stored = await self._send("build", name, work, unit=name, to=observer)
        _write_store(path, stored)
        return record

    async def answer(self, ask: Ask, _path: Path, /) -> Record:
        base = None if ask.base is None else self._ship(ask.base)
        record: Record = await self._send("answer", ask, base)
        return record

    def _ship(self, base: Path) -> Any:
        """Put a base store into the cluster's object store, once for all of its questions."""
        if base not in self._bases:
            self._bases[base] = self._ray.put(base.read_bytes())
        return self._bases[base]

    def release(self, base: Path) -> None:
        self._bases.pop(base, None)

    async def judge(self, record: Record, seat: Seat) -> VerdictRecord:
        verdict: VerdictRecord = await self._send("judge", record, seat)
        return verdict

    async def compare(self, first: Record, second: Record) -> VerdictRecord:
        verdict: VerdictRecord = await self._send("compare", first, second)
        return verdict

    async def _send(
        self, method: str, *arguments: Any, unit: str = WORKER, to: Observer | None = None
    ) -> Any:
        """Let a worker do a unit, and pass on meanwhile what it says of it, and of itself."""
        number = min(range(len(self._workers)), key=self._in_flight.__getitem__)
        self._in_flight[number] += 1
        result = getattr(self._workers[number], method).remote(*arguments)
        task = asyncio.ensure_future(_wait_for(result))
        try:
            while not task.done():
                await asyncio.wait([task], timeout=POLL_S)
                await self._pass_on({WORKER: self._observer, unit: to or self._observer})
            return await task
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, MglError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayActorError as error:
            raise EngineUnavailable(
                f"a worker of the cluster ended {RETRIES + 1} times at the same work: "
                f"{' '.join(str(error).split())[:300]}",
                hint="look at the memory of its machine, and at Ray's logs",
            ) from error
        finally:
            task.cancel()
            self._in_flight[number] -= 1

    async def _pass_on(self, observers: dict[str, Observer]) -> None:
        for unit, observer in observers.items():
            for message in await self._home.take_messages.remote(unit):
                if message[0] == "note":
                    observer.note(message[1])
                else:
                    observer.progress(*message[1:])


async def _wait_for(reference: Awaitable[Any]) -> Any:
    return await reference


def _write_store(path: Path, stored: bytes) -> None:
    """Put a store at its place, all at once."""
    remove_store(path)
    scratch = path.with_suffix(".come")
    scratch.write_bytes(stored)
    scratch.replace(path)
