"""Progress on stderr: bars with the time left on a terminal, plain lines in a log."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final, Self

from mgl.cli.output import clean, say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["BarObserver", "LineObserver", "open_observer"]

LINE_EVERY_S: Final = 10.0
ESTIMATE_OVER_S: Final = 600.0
ESTIMATE_FROM: Final = 0.05  # share of a stage after which its time left is estimated


def open_observer() -> BarObserver | LineObserver:
    """Make an observer: bars if stderr is a terminal, lines if not."""
    return BarObserver() if sys.stderr.isatty() else LineObserver()


class BarObserver:
    """Draws a bar per stage, with elapsed time and time left; a stage that starts over is new."""

    def __init__(self) -> None:
        self._tasks: dict[str, TaskID] = {}
        self._bars = self._make_bars()
        self._is_quiet = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def hush(self) -> None:
        """Wipe the bars, and draw none before ``resume``."""
        if not self._is_quiet:
            self._is_quiet = True
            self._bars.live.transient = True
            self._bars.stop()

    def resume(self) -> None:
        """Draw bars again, of the stages to come."""
        if self._is_quiet:
            self._tasks, self._bars, self._is_quiet = {}, self._make_bars(), False

    def progress(self, stage: str, done: int, total: int) -> None:
        if self._is_quiet:
            return
        self._bars.start()
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage)
        task = self._tasks[stage]
        if done < self._bars.tasks[task].completed:
            self._bars.reset(task)
        self._bars.update(task, completed=done, total=total)

    def note(self, text: str) -> None:
        self._bars.console.print(clean(text), markup=False, highlight=False, soft_wrap=True)

    def _make_bars(self) -> Progress:
        from rich import progress as rich
        from rich.console import Console

        return rich.Progress(
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


class LineObserver:
    """Prints a line when a stage starts and ends, and at most one every ten seconds between.

    A stage whose count falls has started over, and so has its estimate.
    """

    def __init__(self) -> None:
        self._started: dict[str, tuple[float, int]] = {}
        self._done: dict[str, int] = {}
        self._last = 0.0
        self._is_quiet = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def hush(self) -> None:
        """Print no progress before ``resume``."""
        self._is_quiet = True

    def resume(self) -> None:
        """Print progress again."""
        self._started, self._is_quiet = {}, False

    def progress(self, stage: str, done: int, total: int) -> None:
        if self._is_quiet:
            return
        now = time.monotonic()
        is_new = stage not in self._started
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

    def note(self, text: str) -> None:
        say(text)
