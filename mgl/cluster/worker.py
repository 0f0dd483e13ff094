"""A worker of a run: it has one model server, and works on the units that it is sent.

It opens its model with the first unit, so that what goes wrong there is an error of that unit,
which says what to do. The stores of its memories lie in a folder of its own, and go as bytes.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, TypeVar
from uuid import uuid4

from mgl.cluster.home import HomeStore, Said
from mgl.errors import UsageError
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import BuildRecord, Record, VerdictRecord
from mgl.evaluation.runs.units import (
    Ask,
    Build,
    answer_item,
    build_memory,
    compare_answers,
    judge_answer,
    remove_store,
)
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import Workplace
from mgl.llm.engines.recorded import ModelFacts
from mgl.models import shipped

__all__ = ["ANYONE", "Worker"]

ANYONE = ""
"""In place of a unit's name: what is said of the worker itself."""

ResultT = TypeVar("ResultT")
Seconds = dict[str, Any]


class Worker:
    """The actor; it takes several units at once, each in a thread of its own.

    ``home`` is the name of the actor ``Home``. ``facts`` are what the run knows of the model, and
    the worker's model must have the same.
    """

    def __init__(self, home: str, choice: ModelChoice, facts: ModelFacts) -> None:
        import ray

        self._ray, self._home = ray, ray.get_actor(home)
        self._choice = choice
        self._facts = facts
        self._opening = Lock()
        self._opened = ExitStack()
        self._place: Workplace | None = None
        self._folder = Path(self._opened.enter_context(TemporaryDirectory(prefix="mgl-worker-")))

    def ready(self) -> None:
        """Return: there is a place for this worker."""

    def build_memory(self, name: str, work: Build) -> tuple[BuildRecord, Seconds, bytes]:
        """As ``working.build``, with the bytes of the store."""
        path = self._path()
        try:
            told = _Told(self._home, name)
            record, seconds = self._run(lambda place: build_memory(place, work, path, told))
            return record, seconds, path.read_bytes()
        finally:
            remove_store(path)

    def answer_item(
        self, work: Ask, base: bytes | None, keep: bool
    ) -> tuple[Record, Seconds, bytes | None]:
        """As ``working.answer``, over the store whose bytes are given; with the bytes of the
        item's own where they are kept."""
        path, shared = self._path(), self._path()
        try:
            if base is not None:
                shared.write_bytes(base)
                work = replace(work, base=shared)
            record, seconds = self._run(lambda place: answer_item(place, work, path))
            return record, seconds, path.read_bytes() if keep else None
        finally:
            remove_store(path)
            remove_store(shared)

    def judge_answer(self, record: Record, seat: Seat) -> tuple[VerdictRecord, Seconds]:
        """As ``working.judge``."""
        return self._run(lambda place: judge_answer(place, record, seat))

    def compare_answers(self, first: Record, second: Record) -> tuple[VerdictRecord, Seconds]:
        """As ``working.prefer``."""
        return self._run(lambda place: compare_answers(place, first, second))

    def _run(self, make: Callable[[Workplace], Coroutine[Any, Any, ResultT]]) -> ResultT:
        with self._opening:
            if self._place is None:
                self._place = self._open()
            place = self._place
        return place.run(lambda: make(place))

    def _open(self) -> Workplace:
        store = HomeStore.over(self._folder / "calls.sqlite", self._ray, self._home)
        with ExitStack() as opened:
            opened.enter_context(store)
            place = opened.enter_context(
                Workplace(shipped.home(), store, self._choice, _Told(self._home, ANYONE))
            )
            if place.facts != self._facts:
                raise UsageError(
                    f"{self._facts.profile} is not the same model on {socket.gethostname()}: "
                    f"{place.facts}, and the run has {self._facts}",
                    hint="give every machine the same profiles, and servers of the same model",
                )
            self._opened.push(opened.pop_all())
        return place

    def _path(self) -> Path:
        return self._folder / f"{uuid4().hex}.sqlite"


class _Told:
    """An observer that tells the home, where the run hears it."""

    def __init__(self, home: Any, unit: str) -> None:
        self._home = home
        self._unit = unit

    def progress(self, stage: str, done: int, total: int) -> None:
        self._say(("progress", stage, done, total))

    def note(self, text: str) -> None:
        self._say(("note", text))

    def _say(self, said: Said) -> None:
        self._home.say.remote(self._unit, said)
