"""The run's side of a cluster: each unit goes to the worker that has the fewest of them.

A worker that dies is started again by Ray and its units with it, some times; what was logged of
their calls is replayed. A unit gives one record however often it was begun, since the run adds it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from mgl.cluster.home import Home
from mgl.cluster.worker import ANYONE, Worker
from mgl.errors import EngineUnavailable, MglError, ResourceError, UsageError
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import BuildRecord, Record, VerdictRecord
from mgl.evaluation.runs.units import Ask, Build, Executor, OpenExecutor, Workplace, remove_store
from mgl.lab.model import ModelChoice
from mgl.observer import Observer

__all__ = ["shard"]

BEGUN_AGAIN: Final = 3  # times for one unit, as a unit may be what ends its workers
HEARD_EVERY_S: Final = 1.0
READY_S: Final = 120.0


def shard(
    ray: Any,
    database: Path,
    choice: Callable[[str], ModelChoice],
    urls: Sequence[str],
    observer: Observer,
    *,
    concurrency: int,
    keep: bool = False,
) -> OpenExecutor:
    """Opens executors over a connected cluster, with a worker for each of its processors, but no
    more than ``concurrency``, which is of units at once on all of them.

    ``database`` is the home's store. ``choice`` is how a profile's model is opened; the workers
    take ``urls`` in turn, or look for a server on their machine where there are none. UsageError
    for a model that no server runs, and for more servers than workers.
    """

    @contextmanager
    def opened(place: Workplace) -> Iterator[Executor]:
        facts = place.facts
        if facts.engine != "openai":
            raise UsageError(
                f"the workers of a cluster ask model servers, and {facts.profile} would run in "
                f"their processes ({facts.engine})",
                hint="start servers (`mgl serve`), and give --base-url URL[,URL…]",
            )
        count = max(1, min(concurrency, int(ray.cluster_resources().get("CPU", 0))))
        if len(urls) > count:
            raise UsageError(
                f"there are {len(urls)} servers and {count} workers",
                hint="raise --concurrency, or add machines: a worker asks one server",
            )
        pinned = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        always = {"max_restarts": -1, "max_task_retries": -1}
        name = f"mgl-home-{uuid4().hex}"
        keeper = ray.remote(Home).options(
            name=name, num_cpus=0, scheduling_strategy=pinned, **always
        )
        home = keeper.remote(database)
        actor = ray.remote(Worker).options(
            num_cpus=1,
            max_concurrency=concurrency,
            scheduling_strategy="SPREAD",
            max_restarts=-1,
            max_task_retries=BEGUN_AGAIN,
        )
        chosen = replace(
            choice(facts.profile),
            context_tokens=facts.context_tokens,
            embedder=facts.embedder,
            reranker=facts.reranker,
        )
        own = [urls[number % len(urls)] if urls else None for number in range(count)]
        workers = [
            actor.remote(name, chosen if url is None else replace(chosen, base_url=url), facts)
            for url in own
        ]
        try:
            _all_ready(ray, workers)
            observer.note(f"{count} workers of a Ray cluster")
            with redirect_stdout(sys.stderr):  # Ray tells of workers that died there
                yield _Sharded(ray, home, workers, observer, keep)
        finally:
            for one in (*workers, home):
                ray.kill(one)

    return opened


def _all_ready(ray: Any, workers: Sequence[Any]) -> None:
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

    def __init__(
        self, ray: Any, home: Any, workers: Sequence[Any], observer: Observer, keep: bool
    ) -> None:
        self._ray = ray
        self._home = home
        self._workers = workers
        self._observer = observer
        self._keep = keep
        self._begun = [0] * len(workers)

    async def build(
        self, work: Build, path: Path, observer: Observer
    ) -> tuple[BuildRecord, dict[str, Any]]:
        name = f"{work.method.label}\0{work.name}"
        record, seconds, stored = await self._sent(observer, name, "build", name, work)
        _write(path, stored)
        return record, seconds

    async def answer(self, work: Ask, path: Path) -> tuple[Record, dict[str, Any]]:
        base = None if work.base is None else work.base.read_bytes()
        sent = replace(work, base=None), base, self._keep
        record, seconds, stored = await self._sent(self._observer, ANYONE, "answer", *sent)
        if stored is not None:
            _write(path, stored)
        return record, seconds

    async def judge(self, record: Record, seat: Seat) -> tuple[VerdictRecord, dict[str, Any]]:
        verdict, seconds = await self._sent(self._observer, ANYONE, "judge", record, seat)
        return verdict, seconds

    async def compare(self, first: Record, second: Record) -> tuple[VerdictRecord, dict[str, Any]]:
        verdict, seconds = await self._sent(self._observer, ANYONE, "compare", first, second)
        return verdict, seconds

    async def _sent(self, observer: Observer, name: str, method: str, *arguments: Any) -> Any:
        """What a worker gives for a unit; ``observer`` hears what is said of it meanwhile."""
        number = min(range(len(self._workers)), key=self._begun.__getitem__)
        self._begun[number] += 1
        result = getattr(self._workers[number], method).remote(*arguments)
        task = asyncio.ensure_future(_awaited(result))
        try:
            while not task.done():
                await asyncio.wait([task], timeout=HEARD_EVERY_S)
                await self._hear(name, observer)
            return await task
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, MglError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayActorError as error:
            raise EngineUnavailable(
                f"a worker of the cluster ended {BEGUN_AGAIN + 1} times at the same work: "
                f"{' '.join(str(error).split())[:300]}",
                hint="look at the memory of its machine, and at Ray's logs",
            ) from error
        finally:
            task.cancel()
            self._begun[number] -= 1

    async def _hear(self, name: str, observer: Observer) -> None:
        for unit, hears in {ANYONE: self._observer, name: observer}.items():
            for said in await self._home.heard.remote(unit):
                if said[0] == "note":
                    hears.note(said[1])
                else:
                    hears.progress(*said[1:])


async def _awaited(reference: Any) -> Any:
    return await reference


def _write(path: Path, stored: bytes) -> None:
    """Put a store at its place, all at once."""
    remove_store(path)
    scratch = path.with_suffix(".come")
    scratch.write_bytes(stored)
    scratch.replace(path)
