"""The records of running servers, by which every command finds them.

    record = find_server(home, "qwen2.5-7b-instruct", note=print)

``MGL_HOME/servers/run/<port>.json`` says where a server answers, with which key, and its state;
only its owner can read it. Beside it lies a lock that the supervisor holds as long as it lives.
Only the lock shows whether a server is supervised: process numbers are reused and clocks are set.

A server's processes are found by their token (``mgl.processes``), and only a server of theirs is
taken for the one that was started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from mgl.errors import EngineUnavailable, ResourceError
from mgl.models.files import write_whole
from mgl.models.permissions import FILE, make_private_folder
from mgl.models.profiles import Task
from mgl.processes import find_processes

if TYPE_CHECKING:
    from pydantic import TypeAdapter

State = Literal["starting", "ready", "restarting", "failed", "stopped"]

_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
# Commands test a lock by taking it for a moment; a supervisor waits this long for it.
_LOCK_S: Final = 1.0
_TEST_S: Final = 0.1


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """One server as its supervisor last described it.

    ``served_name`` is the name that requests use, ``token`` the mark in the environment of the
    server's processes. ``restarts`` counts since the start; ``last_error`` and ``hint`` explain the
    last crash. ``adapters`` are those it was started with.
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
        return urlsplit(self.base_url).port or 0

    def describe(self) -> str:
        """Model, port and state in a few words."""
        state = f"{self.state}, {self.progress}" if self.progress else self.state
        return f"{self.model} on port {self.port} ({state})"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A server whose supervisor is gone; ``alive`` counts the processes left of it."""

    record: ServerRecord
    alive: int

    def describe(self) -> str:
        """What happened to it and what to do, in one line."""
        record = self.record
        name = f"the server {record.model} on port {record.port}"
        if self.alive:
            return (
                f"{name} runs without its supervisor ({self.alive} processes): "
                f"`mgl serve stop --port {record.port}` ends it"
            )
        if record.state == "failed":
            return f"{name} failed: {record.last_error} (hint: {record.hint}; log: {record.log})"
        return f"{name} and its supervisor ended without a word; its run file is removed"


def find_server(
    home: Path,
    model: str | None = None,
    *,
    note: Callable[[str], None] = lambda _text: None,
) -> ServerRecord | None:
    """Find the server of a model that writes: that of ``model``, or the only one that is ready.

    None if there is none, or several and no ``model``. Raises EngineUnavailable if the server is
    not ready yet. Leftovers are noted; a server without its supervisor is not used, because nobody
    would restart it.
    """
    for leftover in find_leftovers(home):
        note(leftover.describe())
    found = [
        record
        for record in list_running(home)
        if record.task == "generate" and model in (None, record.model)
    ]
    ready = [record for record in found if record.state == "ready"]
    if len(ready) == 1 or (ready and model is not None):
        return ready[0]
    if ready:
        names = ", ".join(record.model for record in ready)
        note(f"{len(ready)} servers are ready ({names}), none is used: choose one with --model")
        return None
    if found:
        raise EngineUnavailable(
            f"your server {found[0].describe()} is not ready yet",
            hint="wait until `mgl serve status` says ready, or choose another engine (--engine)",
        )
    return None


def server_at(home: Path, base_url: str) -> ServerRecord | None:
    """The running server at a URL, if it is one of ours."""
    try:
        place = urlsplit(base_url)
        port = place.port
    except ValueError:
        return None
    if place.hostname not in _LOCAL:
        return None
    return next((one for one in list_running(home) if one.port == port), None)


def list_running(home: Path) -> list[ServerRecord]:
    """List the servers with a living supervisor by port; errors as in ``read_record``."""
    return [
        record
        for port in _list_ports(home)
        if _is_locked(home, port) and (record := read_record(home, port))
    ]


def find_leftovers(home: Path) -> list[Leftover]:
    """Find servers whose supervisors are gone, by port; files with nothing left are removed."""
    found = []
    for port in _list_ports(home):
        if _is_locked(home, port):
            continue
        try:
            record = read_record(home, port)
        except ResourceError:
            record = None
        alive = 0 if record is None else len(find_processes(record.token))
        if not alive:
            remove_record(home, port)
        if record is not None:
            found.append(Leftover(record, alive))
    return found


def read_record(home: Path, port: int) -> ServerRecord | None:
    """Read the record of a port, None if there is none; ResourceError if it is unreadable."""
    from pydantic import ValidationError

    path = run_file(home, port)
    try:
        return _adapter().validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ResourceError(
            f"the run file {path} cannot be read ({type(error).__name__})",
            hint=f"stop the server that wrote it, then delete {path}",
        ) from error


def write_record(home: Path, record: ServerRecord) -> None:
    """Write a record atomically, readable only by its owner."""
    write_whole(run_file(home, record.port), _adapter().dump_json(record, indent=2))


def remove_record(home: Path, port: int) -> None:
    run_file(home, port).unlink(missing_ok=True)


@contextmanager
def lock_port(home: Path, port: int, wait_s: float = _LOCK_S) -> Iterator[bool]:
    """Hold a port's lock, which marks its server as supervised; False if another process does."""
    from filelock import FileLock, Timeout

    from mgl.models.files import release_lock

    path = run_file(home, port).with_suffix(".lock")
    make_private_folder(path.parent)
    lock = FileLock(path, mode=FILE)
    try:
        lock.acquire(timeout=wait_s, poll_interval=0.02)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        release_lock(lock)


def stop_file(home: Path, port: int) -> Path:
    """The file that asks a supervisor to stop; it holds the server's token."""
    return run_file(home, port).with_suffix(".stop")


def _is_locked(home: Path, port: int) -> bool:
    with lock_port(home, port, _TEST_S) as free:
        return not free


def _list_ports(home: Path) -> list[int]:
    folder = run_file(home, 0).parent
    return sorted(int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal())


def run_file(home: Path, port: int) -> Path:
    return home / "servers" / "run" / f"{port}.json"


def _adapter() -> TypeAdapter[ServerRecord]:
    from pydantic import TypeAdapter

    return TypeAdapter(ServerRecord)
