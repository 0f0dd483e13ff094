"""Snapshots of a state, so that opening a memory does not replay its whole log.

    codec = SnapshotCodec(apply, EMPTY)
    codec.read(Snapshot(step, since, codec.version, codec.dump(state)))    # the same state again

A state is a dataclass, which pydantic writes as JSON and reads again. Snapshots that another
version of the code wrote are ignored: the log is what counts.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from mgl.store.records import Snapshot

StateT = TypeVar("StateT")

LEAST: Final = 256
SHARE: Final = 32
"""A snapshot is due when the log has grown by ``LEAST`` steps, and by 1 / ``SHARE``, since the one
before. So one step in many writes the state, and an append costs the same in a long log."""

_log = logging.getLogger(__name__)


def is_due(step: int, last: int) -> bool:
    """Whether a snapshot is due after ``step`` steps, if the last one was taken after ``last``."""
    return step - last >= max(LEAST, step // SHARE)


class SnapshotCodec(Generic[StateT]):
    """Writes and reads states of one kind: those that the edits of ``apply`` make of ``empty``."""

    def __init__(self, apply: Any, empty: StateT) -> None:
        self._apply = apply
        self._empty = empty

    @cached_property
    def version(self) -> str:
        """A digest of the code that makes and writes a state."""
        made_by = (self._apply.__module__, type(self._empty).__module__, __name__)
        return hash_code(made_by)

    def dump(self, state: StateT) -> bytes | None:
        """Write a state as JSON; None where it is not what its type says, or cannot be written."""
        from pydantic import PydanticUndefinedAnnotation, PydanticUserError
        from pydantic_core import PydanticSerializationError

        try:
            body: bytes = self._adapter.dump_json(state, warnings="error")
        except (
            PydanticUserError,
            PydanticUndefinedAnnotation,
            PydanticSerializationError,
        ) as error:
            name = type(state).__qualname__
            _log.warning("no snapshot is kept of %s: %s", name, f"{error}".partition("\n")[0])
            return None
        return body

    def read(self, snapshot: Snapshot) -> StateT | None:
        """Read the state of a snapshot; None where other code wrote it, or it cannot be read."""
        if snapshot.version != self.version:
            _log.info("a snapshot of another version is not used: the whole log is read")
            return None
        try:
            state: StateT = self._adapter.validate_json(snapshot.body)
        except ValueError as error:
            problem = type(error).__name__
            _log.warning("a snapshot is damaged (%s): the whole log is read", problem)
            return None
        return state

    @cached_property
    def _adapter(self) -> Any:
        from pydantic import TypeAdapter

        return TypeAdapter(type(self._empty))


@contextmanager
def pause_collector() -> Iterator[None]:
    """Pause Python's garbage collector while the body makes thousands of objects that stay: it
    would look through all of them again and again, which takes as long as making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def hash_code(modules: Iterable[str]) -> str:
    """Hash Python's version and the source of some modules and of those that they use (see
    ``find_modules``), in hexadecimal."""
    digest = hashlib.blake2b(sys.version.encode(), digest_size=16)
    for name in sorted(find_modules(modules)):
        if file := getattr(sys.modules[name], "__file__", None):
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def find_modules(names: Iterable[str]) -> set[str]:
    """Find the modules, of mgl and of the named modules' packages, that these take functions and
    classes from, directly or not; the named ones are among them."""
    left, found = list(names), set[str]()
    packages = {"mgl", *(name.partition(".")[0] for name in left)}
    while left:
        name = left.pop()
        if name in sys.modules and name not in found and name.partition(".")[0] in packages:
            found.add(name)
            held = [*vars(sys.modules[name]).values()]  # an import elsewhere may add to it
            owners = (getattr(each, "__module__", "") for each in held)
            left += [owner for owner in owners if isinstance(owner, str)]
    return found
