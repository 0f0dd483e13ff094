"""The records of running servers, by which every command finds them.

    record = find_server(home, "qwen2.5-7b-instruct", note=print)

``MGL_HOME/servers/run/<port>.json`` says where a server answers, with which key, and its state;
only its owner can read it. Beside it lies a lock that the supervisor holds as long as it lives.
Only the lock shows whether a server is supervised: process numbers are reused and clocks are set.

A server's processes are found by a token in their environment (``MGL_SERVER``), which children
inherit. Only processes that carry it are ever signalled, whoever started them and whatever their
numbers are, and only a server of theirs is taken for the one that was started. On Linux a process
that changes its title hides its environment from others unless ``SPT_NOENV`` is set there. Other
users' processes cannot be inspected; none is ours.
"""

from __future__ import annotations

import hmac
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from mgl.errors import EngineUnavailable, ResourceError
from mgl.models.files import write_whole
from mgl.models.permissions import FILE, make_private_folder
from mgl.models.profiles import Task

if TYPE_CHECKING:
    import psutil
    from pydantic import TypeAdapter

State = Literal["starting", "ready", "restarting", "failed", "stopped"]

_LOCAL: Final = ("127.0.0.1", "localhost", "::1")
# Commands test a lock by taking it for a moment; a supervisor waits this long for it.
_LOCK_S: Final = 1.0
_TEST_S: Final = 0.1
_TOKEN: Final = "MGL_SERVER"
_TICK_S: Final = 0.1
_DEATH_S: Final = 15.0


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


def write_record(home: Path, record: ServerRecord) -> None:
    """Write a record atomically, readable only by its owner."""
    write_whole(_path(home, record.port), _adapter().dump_json(record, indent=2))


def remove_record(home: Path, port: int) -> None:
    _path(home, port).unlink(missing_ok=True)


@contextmanager
def lock_port(home: Path, port: int, wait_s: float = _LOCK_S) -> Iterator[bool]:
    """Hold a port's lock, which marks its server as supervised; False if another process does."""
    from filelock import FileLock, Timeout

    from mgl.models.files import release_lock

    path = _path(home, port).with_suffix(".lock")
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
    return _path(home, port).with_suffix(".stop")


def _is_locked(home: Path, port: int) -> bool:
    with lock_port(home, port, _TEST_S) as free:
        return not free


def _list_ports(home: Path) -> list[int]:
    folder = _path(home, 0).parent
    return sorted(int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal())


def _path(home: Path, port: int) -> Path:
    return home / "servers" / "run" / f"{port}.json"


def _adapter() -> TypeAdapter[ServerRecord]:
    from pydantic import TypeAdapter

    return TypeAdapter(ServerRecord)


def token_environment(token: str) -> Mapping[str, str]:
    """What the environment of a server's first process must contain."""
    return {_TOKEN: token, "SPT_NOENV": "1"}


def prove_start(challenge: str) -> str | None:
    """Prove that this process was started with its token; None if it was started without one."""
    token = os.environ.get(_TOKEN)
    return compute_proof(token, challenge) if token else None


def compute_proof(token: str, challenge: str) -> str:
    """What only a process that has the token can answer to a challenge; it tells nothing of it."""
    return hmac.new(token.encode(), challenge.encode(), "sha256").hexdigest()


def find_processes(token: str) -> list[psutil.Process]:
    """Find the living processes that carry a token, parents before their children."""
    import psutil

    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(_TOKEN) == token:
                found.append(process)
    return found


def holds_port(token: str, port: int) -> bool:
    """Whether a process that carries a token listens on a port, and so nobody else does."""
    import psutil

    for process in find_processes(token):
        with suppress(psutil.Error):
            for each in process.net_connections("tcp"):
                if each.status == psutil.CONN_LISTEN and each.laddr.port == port:
                    return True
    return False


def end_processes(
    token: str,
    *,
    patience_s: float,
    hurry: Callable[[], bool] = lambda: False,
    reap: Callable[[], object] = lambda: None,
) -> int:
    """End all processes that carry a token; returns how many had to be killed.

    The topmost are asked to stop, and stop their children. What is left after ``patience_s``
    seconds, or once ``hurry`` is true, is killed. ``reap`` is called while waiting, for the
    caller's own children. Raises EngineUnavailable if some survive even that.
    """
    import psutil

    found = find_processes(token)
    own = {process.pid for process in found}
    for process in found:
        with suppress(psutil.Error):
            if process.ppid() not in own:
                process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + patience_s
    while (left := find_processes(token)) and time.monotonic() < deadline and not hurry():
        reap()
        time.sleep(_TICK_S)
    killed = len(left)
    deadline = time.monotonic() + _DEATH_S
    while left:
        if time.monotonic() > deadline:
            numbers = ", ".join(str(process.pid) for process in left)
            raise EngineUnavailable(
                f"the server's processes {numbers} do not die",
                hint="a driver may hold them: look at the system's log, or restart the machine",
            )
        for process in left:
            with suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)
        reap()
        time.sleep(_TICK_S)
        left = find_processes(token)
    reap()
    return killed
