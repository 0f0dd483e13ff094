"""Progress on stderr: bars with the time left on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Final, Self

from mgl.cli.output import clean, say

if TYPE_CHECKING:
    from rich.progress import TaskID

LINE_EVERY_S: Final = 10.0
ESTIMATE_OVER_S: Final = 600.0
ESTIMATE_FROM: Final = 0.05  # share of a stage after which its time left is estimated


def open_observer() -> BarObserver | LineObserver:
    """Make an observer: bars if stderr is a terminal, lines if not."""
    return BarObserver() if sys.stderr.isatty() else LineObserver()


class _QuietObserver:
    """An observer that is silent between ``hush`` and ``resume``: while text streams, or is typed.

    Engines report from threads of their own, so one lock keeps a report from being drawn after
    ``hush`` has returned. Notes that come meanwhile are kept until ``resume``. A note that was made
    already is not repeated before then.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_quiet = False
        self._notes: list[str] = []
        self._noted = set[str]()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(wipe=False)
        self._print_notes()

    def hush(self) -> None:
        """Wipe what is drawn, and print nothing before ``resume``."""
        with self._lock:
            if not self._is_quiet:
                self._is_quiet = True
                self._stop(wipe=True)

    def resume(self) -> None:
        """Report again, on the stages to come."""
        with self._lock:
            if self._is_quiet:
                self._is_quiet = False
                self._noted.clear()
                self._start()
                self._print_notes()

    def progress(self, stage: str, done: int, total: int) -> None:
        with self._lock:
            if not self._is_quiet:
                self._draw(stage, done, total)

    def note(self, text: str) -> None:
        with self._lock:
            if text not in self._noted:
                self._noted.add(text)
                self._notes.append(text)
            if not self._is_quiet:
                self._print_notes()

    def _print_notes(self) -> None:
        for text in self._notes:
            self._print(text)
        self._notes.clear()

    def _start(self) -> None: ...

    def _stop(self, *, wipe: bool) -> None: ...

    def _draw(self, stage: str, done: int, total: int) -> None: ...

    def _print(self, text: str) -> None: ...


class BarObserver(_QuietObserver):
    """Draws a bar per stage, with elapsed time and time left; a stage that starts over is new."""

    def __init__(self) -> None:
        super().__init__()
        self._start()

    def _start(self) -> None:
        from rich import progress as rich
        from rich.console import Console

        self._tasks: dict[str, TaskID] = {}
        self._bars = rich.Progress(
            rich.SpinnerColumn(),
            rich.TextColumn("{task.description}", markup=False),
            rich.BarColumn(),
            rich.MofNCompleteColumn(),
            rich.TimeElapsedColumn(),
            rich.TextColumn("left"),
            rich.TimeRemainingColumn(),
            console=Console(stderr=True),
            speed_estimate_period=ESTIMATE_OVER_S,
        )

    def _stop(self, *, wipe: bool) -> None:
        self._bars.live.transient = wipe
        self._bars.stop()

    def _draw(self, stage: str, done: int, total: int) -> None:
        self._bars.start()
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage)
        task = self._tasks[stage]
        if done < self._bars.tasks[task].completed:
            self._bars.reset(task)
        self._bars.update(task, completed=done, total=total)

    def _print(self, text: str) -> None:
        self._bars.console.print(clean(text), markup=False, highlight=False, soft_wrap=True)


class LineObserver(_QuietObserver):
    """Prints a line when a stage starts and ends, and at most one every ten seconds between.

    A stage whose count falls has started over, and so has its estimate.
    """

    def __init__(self) -> None:
        super().__init__()
        self._started: dict[str, tuple[float, int]] = {}
        self._done: dict[str, int] = {}
        self._last = 0.0

    def _start(self) -> None:
        self._started = {}

    def _draw(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        is_new = stage not in self._started
        if not is_new and done == self._done[stage] == total:
            return
        if is_new or done < self._done[stage]:
            self._started[stage] = (now, done)
        self._done[stage] = done
        start, first = self._started[stage]
        if is_new or done >= total or now - self._last >= LINE_EVERY_S:
            self._last = now
            left = ""
            if done < total and done - first >= max(1, (total - first) * ESTIMATE_FROM):
                left = f", about {(now - start) / (done - first) * (total - done):.0f} s left"
            say(f"{stage}: {done} of {total}{left}")

    def _print(self, text: str) -> None:
        say(text)
