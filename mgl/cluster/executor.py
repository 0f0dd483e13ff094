"""The run's side of a cluster: each unit goes to the worker with the fewest of them.

The units of a worker that dies, or whose machine is lost, are sent to others, a few times; what was
logged of their calls is replayed. Ray starts the worker again where it finds a processor. A unit
gives one record however often it was started: the run adds it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from mgl.cluster.actors import Home, Worker, hash_code
from mgl.errors import EngineUnavailable, MglError, ResourceError, UsageError, install_hint
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import BuildRecord, Record, VerdictRecord
from mgl.evaluation.runs.units import (
    Ask,
    Build,
    Executor,
    OpenExecutor,
    UnitWorkplace,
    remove_store,
)
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import Workplaces
from mgl.llm.engines.recorded import ModelFacts
from mgl.models.permissions import open_private
from mgl.observer import Observer

LOCAL: Final = "local"
LOOPBACK: Final = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""If this is 0 when ray is imported, Ray stays on the loopback interface, on any system."""
REACH_S: Final = 10.0
RETRIES: Final = 3  # of one unit, as a unit may be what kills its workers
READY_S: Final = 120.0
_LOOK_S: Final = 1.0


@contextmanager
def connect(address: str | None = None) -> Iterator[Any]:
    """Yield the module ``ray``, connected to ``address``, RAY_ADDRESS, or a cluster of its own.

    Without an address a cluster of this machine alone is started, and stopped at the end; it
    listens on 127.0.0.1 and reports nothing to anyone. An existing connection of this process is
    used, and left open. UsageError if ray is not installed or the address cannot be used,
    ResourceError if no cluster answers.
    """
    address = address or os.environ.get("RAY_ADDRESS") or LOCAL
    if address == LOCAL:
        os.environ[LOOPBACK] = "0"
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "--executor ray needs the package ray", hint=install_hint("ray")
        ) from error
    own = not ray.is_initialized()
    if own:
        _connect(ray, address)
    try:
        yield ray
    finally:
        if own:
            with redirect_stdout(sys.stderr):  # where Ray reports what is left to report
                ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if address.startswith("ray://"):
        raise UsageError(
            f"{address} is for programs that run outside the cluster",
            hint="start mgl on a machine of the cluster, with --ray-address auto",
        )
    options = {"include_dashboard": False} if address == LOCAL else {}
    try:
        _reach(address)
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # Ray raises bare exceptions, too
        raise ResourceError(
            f"no Ray cluster answers at {address}: {_shorten(error)}",
            hint="`ray status` says whether one runs; leave out --ray-address for one of this "
            "machine alone",
        ) from error


def _reach(address: str) -> None:
    """OSError if nothing listens at a host and port: Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()


def _shorten(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def shard(ray: Any, places: Workplaces, urls: Sequence[str], *, concurrency: int) -> OpenExecutor:
    """Return what opens executors over a connected cluster, with one worker per processor but at
    most ``concurrency``, which is how many units are worked on at once by all.

    ``places`` have the home's store, and say how a profile's model is opened; the workers take
    ``urls`` in turn, or look for a server on their machine if there are none. UsageError for a
    model that no server runs, and for more servers than workers.
    """

    @contextmanager
    def open_executor(place: UnitWorkplace) -> Iterator[Executor]:
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
        home, name = _start_home(ray, places.store.path)
        own = [urls[number % len(urls)] if urls else None for number in range(count)]
        options = places.choice(facts.profile), facts, place.owner
        workers = _start_workers(ray, name, options, own, concurrency)
        try:
            _check_machines(ray, workers)
            places.observer.note(f"{count} workers of a Ray cluster")
            with redirect_stdout(sys.stderr):  # where Ray reports workers that died
                yield _Sharded(ray, workers, places.observer)
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
        max_task_retries=0,  # a call to a worker that is away fails at once
    )
    choice = replace(
        choice,
        context_tokens=facts.context_tokens,
        embedder=facts.embedder,
        reranker=facts.reranker,
    )
    choices = [choice if url is None else replace(choice, base_url=url) for url in urls]
    return [actor.remote(home, one, facts, owner) for one in choices]


def _check_machines(ray: Any, workers: Sequence[Any]) -> None:
    """Wait for the workers; ResourceError for one that finds no processor, or has another mgl."""
    references = [worker.describe_machine.remote() for worker in workers]
    ready, late = ray.wait(references, num_returns=len(references), timeout=READY_S)
    if late:
        raise ResourceError(
            f"{len(late)} of {len(workers)} workers found no free processor of the cluster in "
            f"{READY_S:.0f} s",
            hint="wait until its other work has ended, or lower --concurrency",
        )
    try:
        found = ray.get(ready)
    except ray.exceptions.RayError as error:
        raise ResourceError(
            f"a worker cannot start: {_shorten(error)}",
            hint="install the same mindgraph-lab on every machine, in the Python of its "
            "`ray start`",
        ) from error
    own = hash_code()
    if others := sorted({machine for machine, code in found if code != own}):
        raise ResourceError(
            f"{', '.join(others)} has another mgl than this machine",
            hint="install the same mindgraph-lab on every machine: records must not depend on "
            "where they were made",
        )


class _Sharded:
    """An ``Executor``."""

    def __init__(self, ray: Any, workers: Sequence[Any], observer: Observer) -> None:
        self._ray, self._workers = ray, workers
        self._observer = observer
        self._in_flight = dict.fromkeys(range(len(workers)), 0)
        self._away: dict[int, asyncio.Task[None]] = {}
        self._bases: dict[Path, Any] = {}

    async def build(self, work: Build, path: Path, observer: Observer) -> BuildRecord:
        record: BuildRecord
        record, stored = await self._send("build", work, observer=observer)
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

    async def _send(self, method: str, *arguments: Any, observer: Observer | None = None) -> Any:
        """Send a unit to a worker, to another if that one ends, and pass on its notes."""
        ended: Exception | None = None
        for _ in range(RETRIES + 1):
            number = await self._choose()
            self._in_flight[number] += 1
            try:
                result, notes = await getattr(self._workers[number], method).remote(*arguments)
            except self._ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, MglError):
                    raise error.cause from None
                raise
            except self._ray.exceptions.RayActorError as error:
                ended = error
                if number not in self._away:
                    self._away[number] = asyncio.create_task(self._await_return(number))
                continue
            finally:
                self._in_flight[number] -= 1
            for note in notes:
                (observer or self._observer).note(note)
            return result
        assert ended is not None
        raise EngineUnavailable(
            f"workers of the cluster ended {RETRIES + 1} times at the same work: {_shorten(ended)}",
            hint="look at the memory of their machines, and at Ray's logs",
        ) from ended

    async def _choose(self) -> int:
        """The worker with the fewest units; EngineUnavailable if all are away for too long."""
        try:
            async with asyncio.timeout(READY_S):
                while not (here := self._in_flight.keys() - self._away.keys()):
                    looks = self._away.values()
                    back, _ = await asyncio.wait(looks, return_when=asyncio.FIRST_COMPLETED)
                    for each in back:
                        each.result()
        except TimeoutError as error:
            raise EngineUnavailable(
                f"no worker of the cluster came back within {READY_S:.0f} s",
                hint="`ray status` shows the machines; `mgl eval resume` continues the run",
            ) from error
        return min(sorted(here), key=self._in_flight.__getitem__)

    async def _await_return(self, number: int) -> None:
        """Wait until Ray has started a worker again."""
        while True:
            try:
                await self._workers[number].describe_machine.remote()
            except self._ray.exceptions.RayError:
                await asyncio.sleep(_LOOK_S)
            else:
                del self._away[number]
                return


def _write_store(path: Path, stored: bytes) -> None:
    """Put a store at its place, all at once."""
    remove_store(path)
    scratch = path.with_suffix(".come")
    with open_private(scratch, "wb") as file:
        file.write(stored)
    scratch.replace(path)
