"""What a long task reports while it runs: how far it is, and notes for the user."""

from __future__ import annotations

from typing import Final, Protocol

__all__ = ["SILENT", "Observer", "SilentObserver"]


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


SILENT: Final = SilentObserver()
