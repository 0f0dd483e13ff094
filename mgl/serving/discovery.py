"""Finding a server that mgl runs, for commands that were told of none.

    record = find_server(home, "qwen2.5-7b-instruct", note=print)

One that is ready is taken: the one that serves the model that was asked for, or the only one where
none was. One that is not ready yet is an error that says how far it is, so that nobody waits
without knowing for what. What is left of servers that ended is said once, and cleaned.

A server without its supervisor is reported and not used: nobody would start it again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from mgl.errors import EngineUnavailable
from mgl.models.profiles import Task
from mgl.serving import processes, runfile
from mgl.serving.runfile import ServerRecord

__all__ = ["Leftover", "find_server", "leftovers", "server_at"]

_HERE: Final = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A server whose supervisor is gone; ``alive`` counts the processes that are left of it."""

    record: ServerRecord
    alive: int

    def describe(self) -> str:
        """What happened to it, and what is to be done, in one line."""
        record = self.record
        name = f"the server {record.model} on port {record.port}"
        if self.alive:
            return (
                f"{name} runs without its supervisor ({self.alive} processes): "
                f"`mgl serve stop --port {record.port}` ends it"
            )
        if record.state == "failed":
            return f"{name} failed: {record.last_error} (hint: {record.hint}; log: {record.log})"
        return f"{name} ended unnoticed with its supervisor; its run file is removed"


def leftovers(home: Path) -> list[Leftover]:
    """Servers whose supervisors are gone. Files of which nothing is left are removed."""
    found = []
    for record in runfile.left_behind(home):
        alive = len(processes.carrying(record.token))
        if not alive:
            runfile.forget(home, record.port)
        found.append(Leftover(record, alive))
    return found


def find_server(
    home: Path,
    model: str | None = None,
    *,
    task: Task = "generate",
    note: Callable[[str], None] = lambda _text: None,
) -> ServerRecord | None:
    """The server to use: that of ``model``, or without one the only one that is ready.

    None where there is no such server, or several and no ``model``. Raises EngineUnavailable
    where it is not ready yet.
    """
    for leftover in leftovers(home):
        note(leftover.describe())
    there = [
        record
        for record in runfile.running(home)
        if record.task == task and model in (None, record.model)
    ]
    ready = [record for record in there if record.state == "ready"]
    if len(ready) == 1 or (ready and model is not None):
        return ready[0]
    if ready:
        names = ", ".join(record.model for record in ready)
        note(f"{len(ready)} servers are ready ({names}), none is used: choose one with --model")
        return None
    for record in there:
        raise EngineUnavailable(
            f"your server {record.describe()} is not ready yet",
            hint="wait until `mgl serve status` says ready, or name another way with --engine",
        )
    return None


def server_at(home: Path, base_url: str) -> ServerRecord | None:
    """The server at a URL, where it is one that mgl runs."""
    try:
        place = urlsplit(base_url)
        port = place.port
    except ValueError:
        return None
    if place.hostname not in _HERE:
        return None
    return next((one for one in runfile.running(home) if one.port == port), None)
