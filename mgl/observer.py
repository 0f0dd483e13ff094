"""What a long task reports while it runs: how far it is, and notes for the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol


class Observer(Protocol):
    """Hears how far a long task is; the CLI draws it, tests record it."""

    def progress(self, stage: str, done: int, total: int) -> None: ...

    def note(self, text: str) -> None: ...


class SilentObserver:
    """Hears and says nothing."""

    def progress(self, stage: str, done: int, total: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass


def report_fetch(observer: Observer) -> Callable[[str, int, int], None]:
    """Make what tells an observer of a download: its label, and the bytes done and in all."""

    def report(label: str, done: int, total: int) -> None:
        observer.progress(f"fetching {label} (MB)", done // 1_000_000, total // 1_000_000)

    return report


SILENT: Final = SilentObserver()
