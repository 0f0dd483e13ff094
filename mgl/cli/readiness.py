"""What a server is at, told while it starts: one line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mgl.cli.output import clean, say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from mgl.serving.runfile import ServerRecord

__all__ = ["telling"]


@contextmanager
def telling(home: Path) -> Iterator[Callable[[ServerRecord], None]]:
    """What a supervisor reports to; the line with the server's URL goes to stdout."""
    teller = _Teller(home, _Line() if sys.stderr.isatty() else None)
    try:
        yield teller.hear
    finally:
        teller.end()


class _Teller:
    def __init__(self, home: Path, line: _Line | None) -> None:
        self._home = home
        self._line = line
        self._restarts = 0

    def hear(self, record: ServerRecord) -> None:
        if record.restarts > self._restarts:
            self._restarts = record.restarts
            self.end()
            say(f"{record.model} crashed: {record.last_error}")
        if record.state == "ready":
            self.end()
            typer.echo(f"{record.model} is ready at {record.base_url}")
            path = self._home / "servers" / "run" / f"{record.port}.json"
            say(f"every mgl command finds it by itself; others find its key in {path}")
        elif record.state in ("starting", "restarting"):
            doing = record.progress or "starting"
            text = f"{record.model}: {doing}"
            if record.state == "restarting":
                text = f"{record.model}: starting again, {doing}"
            if self._line is None:
                say(text)
            else:
                self._line.show(clean(text))

    def end(self) -> None:
        if self._line is not None:
            self._line.end()


class _Line:
    """One line that is written over, with the time since it began."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def show(self, text: str) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        if self._progress is None:
            self._progress = Progress(
                SpinnerColumn(),
                TextColumn("{task.description}", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._progress.add_task(text, total=None)
            self._progress.start()
        assert self._task is not None
        self._progress.update(self._task, description=text)

    def end(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
