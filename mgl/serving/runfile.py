"""The file that a running server leaves, by which every other command finds it.

    for record in running(home):
        print(record.model, record.base_url, record.state)

``MGL_HOME/servers/run/<port>.json`` says where the server answers, with which key, and how far it
is; only its owner can read it. Beside it lies a lock that the supervisor holds as long as it
lives. The lock alone tells whether a server is being looked after: process numbers are used again
and clocks are set, so neither is asked.

It does not know whether a server answers, and starts and stops nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from mgl.errors import ResourceError
from mgl.models.profiles import Task

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "ServerRecord",
    "State",
    "forget",
    "hold",
    "left_behind",
    "read",
    "running",
    "write",
]

State = Literal["starting", "ready", "restarting", "failed", "stopped"]

# Others look at a lock by taking it for a moment; a supervisor waits that long for it.
_PATIENCE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One server as its supervisor last described it.

    ``served_name`` is the name that requests use, ``token`` the mark that the server's processes
    carry in their environment. ``restarts`` counts since the start; ``last_error`` and ``hint``
    say why it crashed last. ``adapters`` are those it was started with.
    """

    profile: str
    model: str
    task: Task
    served_name: str
    base_url: str
    api_key: str
    token: str
    supervisor_pid: int
    log: Path
    state: State = "starting"
    progress: str = ""
    restarts: int = 0
    last_error: str | None = None
    hint: str | None = None
    adapters: Mapping[str, Path] = field(default_factory=dict)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return urlsplit(self.base_url).port or 0

    def describe(self) -> str:
        """Model, place and state in a few words."""
        doing = f"{self.state}, {self.progress}" if self.progress else self.state
        return f"{self.model} on port {self.port} ({doing})"


def running(home: Path) -> list[ServerRecord]:
    """The servers whose supervisors live, in order of port; ResourceError as in ``read``."""
    return [record for port in _ports(home) if _held(home, port) and (record := read(home, port))]


def left_behind(home: Path) -> list[ServerRecord]:
    """What the files say of servers whose supervisors are gone, in order of port.

    A file that cannot be read says nothing of use, and is removed.
    """
    found = []
    for port in _ports(home):
        if not _held(home, port):
            try:
                record = read(home, port)
            except ResourceError:
                forget(home, port)
                continue
            if record is not None:
                found.append(record)
    return found


def read(home: Path, port: int) -> ServerRecord | None:
    """What the file of a port says, None without one; ResourceError where it makes no sense."""
    from pydantic import ValidationError

    path = _path(home, port)
    try:
        return _adapter().validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ResourceError(
            f"the run file {path} cannot be read ({type(error).__name__})",
            hint=f"stop the server that wrote it, then delete {path}",
        ) from error


def write(home: Path, record: ServerRecord) -> None:
    """Put a record in its place at once, readable by its owner only."""
    path = _path(home, record.port)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(_adapter().dump_json(record, indent=2))
    part.replace(path)


def forget(home: Path, port: int) -> None:
    """Remove the file of a port."""
    _path(home, port).unlink(missing_ok=True)


@contextmanager
def hold(home: Path, port: int) -> Iterator[bool]:
    """Hold a port's lock, which says that its server is looked after; False if another does."""
    import fcntl

    _folder(home).mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(_path(home, port).with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        until = time.monotonic() + _PATIENCE_S
        taken = False
        while not taken:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                taken = True
            except BlockingIOError:
                if time.monotonic() >= until:
                    break
                time.sleep(0.02)
        yield taken
    finally:
        os.close(descriptor)


def _held(home: Path, port: int) -> bool:
    import fcntl

    try:
        descriptor = os.open(_path(home, port).with_suffix(".lock"), os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _ports(home: Path) -> list[int]:
    return sorted(int(path.stem) for path in _folder(home).glob("*.json") if path.stem.isdecimal())


def _folder(home: Path) -> Path:
    return home / "servers" / "run"


def _path(home: Path, port: int) -> Path:
    return _folder(home) / f"{port}.json"


def _adapter() -> TypeAdapter[ServerRecord]:
    from pydantic import TypeAdapter

    return TypeAdapter(ServerRecord)
