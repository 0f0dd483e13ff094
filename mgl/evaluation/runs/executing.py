"""Where the units of a run are worked on: in this process, or wherever an ``Executor`` takes them.

    >>> with here(place) as executor:                                   # doctest: +SKIP
    ...     record, seconds = place.run(lambda: executor.answer(work, path))

A unit and what comes of it are values, so an executor may send them to another machine. Which unit
is next, and what is kept, is the runner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from mgl.evaluation.judges.panel import Seat
from mgl.evaluation.runs.records import BuildRecord, Record, VerdictRecord
from mgl.evaluation.runs.working import Ask, Build, answer, build, judge, prefer
from mgl.evaluation.runs.workplace import Workplace
from mgl.observer import SILENT, Observer

__all__ = ["Executor", "OpenExecutor", "here"]


class Executor(Protocol):
    """Works on units as the functions of ``mgl.evaluation.runs.working`` do; raises what they do.

    ``path`` is where the store of a build lies afterwards; the store of an answer may lie there.
    """

    async def build(
        self, work: Build, path: Path, observer: Observer
    ) -> tuple[BuildRecord, dict[str, Any]]: ...

    async def answer(self, work: Ask, path: Path) -> tuple[Record, dict[str, Any]]: ...

    async def judge(self, record: Record, seat: Seat) -> tuple[VerdictRecord, dict[str, Any]]: ...

    async def prefer(
        self, first: Record, second: Record
    ) -> tuple[VerdictRecord, dict[str, Any]]: ...


OpenExecutor = Callable[[Workplace], AbstractContextManager[Executor]]
"""Opens an executor of work with a model, which is the workplace's."""


@contextmanager
def here(place: Workplace) -> Iterator[Executor]:
    """An executor in this process."""
    yield _Here(place)


class _Here:
    def __init__(self, place: Workplace) -> None:
        self._place = place

    async def build(
        self, work: Build, path: Path, observer: Observer
    ) -> tuple[BuildRecord, dict[str, Any]]:
        return await build(self._place, work, path, observer)

    async def answer(self, work: Ask, path: Path) -> tuple[Record, dict[str, Any]]:
        return await answer(self._place, work, path, SILENT)

    async def judge(self, record: Record, seat: Seat) -> tuple[VerdictRecord, dict[str, Any]]:
        return await judge(self._place, record, seat)

    async def prefer(self, first: Record, second: Record) -> tuple[VerdictRecord, dict[str, Any]]:
        return await prefer(self._place, first, second)
