"""Memories at work in processes of their own, which may kill themselves at a given moment.

Moments are counted: a call of the model is one, when it begins; a transaction is two, before its
commit and after it. So a kill is the same kill in every run, however busy the machine is.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, Literal

import pytest

from mgl.lab import Lab, OwnModels
from mgl.llm.base import Completion, Request
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store, file
from mgl.types import Conversation
from tests.conformance.kinds import (
    KINDS,
    TALK,
    Case,
    CountingEngine,
    install_toys,
    keep_snapshots,
    run,
    write_toys,
)
from tests.patience import PATIENCE_S

Operation = Literal["build", "append", "append even", "append odd", "forget"]

FORGOTTEN: Final = ("t3", "t8")
# Forks from a process that has imported this module and has no threads.
FORKING: Final = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__, "tests.conformance.warm"])


class Clock:
    """Counts moments; at the ``last`` the process ends."""

    def __init__(self, last: int | None) -> None:
        self.now = 0
        self._last = last
        self._transaction = file.transaction

    def tick(self) -> None:
        if self.now == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.now += 1

    @contextmanager
    def transaction(self, connection: Any) -> Iterator[None]:
        with self._transaction(connection):
            yield
            self.tick()
        self.tick()


class LoggingEngine(CountingEngine):
    """Writes the key of each call to a file before it replies."""

    def __init__(self, log: Path, clock: Clock) -> None:
        super().__init__()
        self._log, self._clock = log, clock

    async def generate(self, request: Request) -> Completion:
        self._clock.tick()
        completion = await super().generate(request)
        with self._log.open("a") as log:
            log.write(f"{self.keys[-1]}\n")
        return completion


class Place:
    """A folder with a database, the keys of the calls, and the ids of the turns whose ``append``
    has returned."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = folder / "mgl.sqlite"
        self.calls, self.appended = folder / "calls", folder / "appended"

    def read_lines(self, path: Path) -> list[str]:
        return path.read_text().split() if path.exists() else []

    def work(self, case: Case, operation: Operation, last: int | None = None) -> int | None:
        """Do an operation, or what is left of it, in a process of its own. How many moments it
        had; None where it killed itself."""
        receiver, sender = FORKING.Pipe(duplex=False)
        process = FORKING.Process(target=_work, args=(case, operation, self.folder, last, sender))
        process.start()
        sender.close()
        process.join()
        with receiver:
            if process.exitcode == -signal.SIGKILL:
                return None
            assert process.exitcode == 0
            moments: int = receiver.recv()
            return moments

    def work_together(self, case: Case, operations: Sequence[Operation]) -> None:
        """Do operations in processes that begin together."""
        barrier = FORKING.Barrier(len(operations), timeout=PATIENCE_S)  # one may die before it
        processes = [
            FORKING.Process(target=_work_beside, args=(case, each, self.folder, barrier))
            for each in operations
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * len(operations)


def _work(case: Case, operation: Operation, folder: Path, last: int | None, sender: Any) -> None:
    place, clock = Place(folder), Clock(last)
    with pytest.MonkeyPatch.context() as patch, Store.open(place.database) as store:
        _prepare(patch, case, folder)
        patch.setattr(file, "transaction", clock.transaction)
        source = None if operation == "build" else Conversation.from_name("talk")
        memory = case.open(store, LoggingEngine(place.calls, clock), source)
        asyncio.run(_operate(case, operation, memory, place))
    sender.send(clock.now)


def _work_beside(case: Case, operation: Operation, folder: Path, barrier: Any) -> None:
    """Do an operation by the lab, whose builds of one memory wait for each other."""
    with (
        pytest.MonkeyPatch.context() as patch,
        Lab.open(
            OwnModels(CountingEngine(), embedder=WordEmbedder(), reranker=WordReranker()),
            home=folder,
        ) as lab,
    ):
        _prepare(patch, case, folder)
        barrier.wait()
        if operation == "build":
            asked = [question.text for question in case.questions]
            lab.build(case.source, asked, memory=case.name, **KINDS[case.line])
            return
        talk = lab.talk("talk", memory=case.name, **KINDS[case.line])
        match operation:
            case "append":
                talk.extend(TALK.turns)
            case "append even":
                talk.extend(TALK.turns[::2])
            case "append odd":
                talk.extend(TALK.turns[1::2])
            case "forget":
                talk.forget(FORGOTTEN)
        talk.flush()


def _prepare(patch: pytest.MonkeyPatch, case: Case, folder: Path) -> None:
    keep_snapshots(patch)
    if case.is_peer:
        toys = Path(mkdtemp(dir=folder))
        write_toys(toys)
        install_toys(patch, toys)


async def _operate(case: Case, operation: Operation, memory: Any, place: Place) -> None:
    if operation == "build":
        await run(case, memory)
    elif operation == "forget":
        if not memory.export()["forgotten"]:
            await memory.forget(FORGOTTEN)
        await memory.build()
    else:
        for turn in TALK.turns:
            await memory.append(turn)
            with place.appended.open("a") as lines:
                lines.write(f"{turn.id}\n")
        await memory.flush()
