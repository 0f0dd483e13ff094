"""The actors of a sharded run: the home, beside the run's store, and the workers.

    >>> store = HomeStore.over(path, ray, home)         # doctest: +SKIP
    >>> store.find_call(key)                            # doctest: +SKIP

The home runs on the machine of the run and is the only writer to its store while workers are at
work; each request takes a round trip of milliseconds, where a model call takes seconds. A worker
has one model server and works on the units that it is sent. It opens its model with the first unit,
so that what goes wrong there is an error of that unit. The stores of its memories travel as bytes.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Self, TypeVar
from uuid import uuid4

import mgl
from mgl.errors import MglError, UsageError
from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.records import BuildRecord, Record, VerdictRecord
from mgl.evaluation.runs.units import Ask, Build, LocalExecutor, execute_here, remove_store
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import Workplace
from mgl.llm.engines.recorded import ModelFacts
from mgl.models import shipped
from mgl.models.permissions import open_private
from mgl.observer import SilentObserver
from mgl.store import Store
from mgl.store.owners import Owner, list_owners, owned_by

ResultT = TypeVar("ResultT")


def hash_code() -> str:
    """Hash mgl's own files: records must not depend on the machine that they were made on."""
    folder = Path(mgl.__file__).parent
    hashed = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        hashed.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return hashed.hexdigest()


class Home:
    """The actor over the run's store."""

    def __init__(self, path: Path) -> None:
        self._store = Store.open(path)

    def call(self, owners: Sequence[Owner], method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the store for these owners."""
        with owned_by(*owners):
            return getattr(self._store, method)(*arguments, **named)


def _forward(method: str) -> Any:
    """Make a method that calls the home; an error of mgl that was raised there is raised here."""

    def call(self: HomeStore, *arguments: Any, **named: Any) -> Any:
        try:
            return self.ray.get(self.home.call.remote(list_owners(), method, *arguments, **named))
        except self.ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, MglError):
                raise error.cause from None
            raise

    return call


class HomeStore(Store):
    """A store whose calls, deletions, token counts and vectors are the home's."""

    ray: Any
    home: Any

    @classmethod
    def over(cls, path: Path, ray: Any, home: Any) -> Self:
        """Open a store at ``path`` over the actor ``home``."""
        store = cls.open(path)
        store.ray, store.home = ray, home
        return store

    add_call = _forward("add_call")
    count_deletions = _forward("count_deletions")
    find_call = _forward("find_call")
    claim_call = _forward("claim_call")
    share_call = _forward("share_call")
    own = _forward("own")
    token_counts = _forward("token_counts")
    put_token_counts = _forward("put_token_counts")
    vectors = _forward("vectors")
    put_vectors = _forward("put_vectors")


class Worker:
    """The actor that works on units, several at once, each in a thread of its own.

    ``home`` is the name of the actor ``Home``; the worker's model must have the same ``facts`` as
    the run's, and its calls belong to ``owner``. Its methods are those of
    ``mgl.evaluation.runs.units``; each also returns the notes that there are for the user.
    """

    def __init__(
        self, home: str, choice: ModelChoice, facts: ModelFacts, owner: str | None
    ) -> None:
        import ray

        self._ray, self._home = ray, ray.get_actor(home)
        self._choice = choice
        self._facts = facts
        self._owner = owner
        self._notes = _Notes()
        self._lock = Lock()
        self._stack = ExitStack()
        self._place: Workplace | None = None
        self._folder = Path(self._stack.enter_context(TemporaryDirectory(prefix="mgl-worker-")))

    def describe_machine(self) -> tuple[str, str]:
        """Name the machine, and hash the mgl on it: the worker has found a processor."""
        return socket.gethostname(), hash_code()

    def build(self, work: Build) -> tuple[tuple[BuildRecord, bytes], list[str]]:
        """Build a memory, with the bytes of its store."""
        path = self._new_path()
        try:
            record, notes = self._run(
                lambda place: LocalExecutor(place).build(work, path, self._notes)
            )
            return (record, path.read_bytes()), notes
        finally:
            remove_store(path)

    def answer(self, ask: Ask, base: bytes | None) -> tuple[Record, list[str]]:
        """Answer over the store whose bytes are given, if any."""
        path, shared = self._new_path(), self._new_path()
        if base is not None:
            with open_private(shared, "wb") as file:
                file.write(base)
            ask = replace(ask, base=shared)

        async def answer(place: Workplace) -> Record:
            with execute_here(place) as executor:
                return await executor.answer(ask, path)

        try:
            return self._run(answer)
        finally:
            remove_store(path)
            remove_store(shared)

    def judge(self, record: Record, seat: Seat) -> tuple[VerdictRecord, list[str]]:
        return self._run(lambda place: LocalExecutor(place).judge(record, seat))

    def _run(
        self, make: Callable[[Workplace], Coroutine[Any, Any, ResultT]]
    ) -> tuple[ResultT, list[str]]:
        with self._lock:
            if self._place is None:
                self._place = self._open()
            place = self._place
        return place.run(lambda: make(place)), self._notes.take()

    def _open(self) -> Workplace:
        with ExitStack() as opened:
            store = HomeStore.over(self._new_path(), self._ray, self._home)
            opened.enter_context(store)
            place = opened.enter_context(
                Workplace(shipped.home(), store, self._choice, self._notes)
            )
            place.owner = self._owner
            if place.facts != self._facts:
                raise UsageError(
                    f"{self._facts.profile} is not the same model on {socket.gethostname()}: "
                    f"{place.facts}, and the run has {self._facts}",
                    hint="give every machine the same profiles, and servers of the same model",
                )
            self._stack.push(opened.pop_all())
        return place

    def _new_path(self) -> Path:
        return self._folder / f"{uuid4().hex}.sqlite"


class _Notes(SilentObserver):
    """Keeps notes until a unit takes them along."""

    def __init__(self) -> None:
        self._kept: list[str] = []

    def note(self, text: str) -> None:
        self._kept.append(text)

    def take(self) -> list[str]:
        taken, self._kept = self._kept, []
        return taken
