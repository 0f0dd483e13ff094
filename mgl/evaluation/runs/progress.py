"""How far a run is, told to its observer."""

from __future__ import annotations

from mgl.observer import Observer

__all__ = ["Count", "Named"]


class Count:
    """How far something is, told to an observer each time that it goes on."""

    def __init__(self, observer: Observer, stage: str, done: int, total: int) -> None:
        self._observer = observer
        self._stage = stage
        self._done, self._total = done, total
        observer.progress(stage, done, total)

    def one_more(self) -> None:
        self._done += 1
        self._observer.progress(self._stage, self._done, self._total)


class Named:
    """An observer of one build among others."""

    def __init__(self, observer: Observer, name: str) -> None:
        self._observer = observer
        self._name = name

    def progress(self, stage: str, done: int, total: int) -> None:
        self._observer.progress(f"{self._name}: {stage}", done, total)

    def note(self, text: str) -> None:
        self._observer.note(f"{self._name}: {text}")
