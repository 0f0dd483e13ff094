"""Processes of mgl: start one in a session of its own, find it again, and end all that it started.

    started = start([sys.executable, "-m", "mgl", "up"], log, new_token())
    health = started.wait_for(lambda: ask_health(root, started.token), limit_s=120)
    end_processes(started.token, patience_s=10)            # from any other process, too

A process carries a token in its environment (``MGL_SERVER``), which its children inherit, unless
they are started here as well: those get a token of their own. Only processes that carry a token are
ever signalled, whoever started them and whatever their numbers are: numbers are reused. On Linux a
process that changes its title hides its environment from others unless ``SPT_NOENV`` is set there.
Other users' processes cannot be inspected.
"""

from __future__ import annotations

import hmac
import math
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mgl.errors import EngineUnavailable
from mgl.models.permissions import make_private_folder, open_private

if TYPE_CHECKING:
    import psutil

TICK_S: Final = 0.1
_TOKEN: Final = "MGL_SERVER"
_DEATH_S: Final = 15.0
_WORDS_BYTES: Final = 10_000
_WORDS_CHARS: Final = 300
_LINE_END: Final = re.compile(rb"[\r\n]+")  # progress bars end a line with a carriage return
_MOST_BYTES: Final = 50_000_000

FoundT = TypeVar("FoundT")


class LogTail:
    """What is written to a log from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = self._read = path.stat().st_size
        self._rest = b""

    def read_lines(self) -> list[str]:
        """Read the lines that were finished since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        self._read += len(new)
        *whole, self._rest = _LINE_END.split(self._rest + new)
        return [line.decode("utf-8", "replace") for line in whole if line]

    def read_end(self, most: int = _WORDS_BYTES) -> str:
        """Read the last ``most`` bytes, at most, of what was written from the start on."""
        size = self._path.stat().st_size
        with self._path.open("rb") as file:
            file.seek(max(self._start, size - most))
            return file.read().decode("utf-8", "replace")

    def read_last_line(self) -> str:
        """The last line, cut to 300 characters, for an error that says why a process ended."""
        lines = self.read_end().strip().splitlines()
        return lines[-1][:_WORDS_CHARS] if lines else "it does not say why"


@dataclass(frozen=True, slots=True)
class Started:
    """A process that was started here; ``log`` is what it has written since."""

    process: subprocess.Popen[bytes]
    token: str
    log: LogTail

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def wait_for(
        self, find: Callable[[], FoundT | None], limit_s: float = math.inf
    ) -> FoundT | None:
        """Wait until ``find`` gives something; None if the process ends first, or time is up."""
        deadline = time.monotonic() + limit_s
        while True:
            is_over = self.has_ended or time.monotonic() > deadline
            if (found := find()) is not None or is_over:
                return found
            time.sleep(TICK_S)

    def end(self, *, patience_s: float, hurry: Callable[[], bool] = lambda: False) -> int:
        """End it with its children, as ``end_processes`` does, and reap it."""
        killed = end_processes(self.token, patience_s=patience_s, hurry=hurry)
        # One that ends loses its token before it can be reaped; one that hides its token lives on.
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_DEATH_S)
        return killed


def new_token() -> str:
    return secrets.token_hex(16)


def start(
    command: Sequence[str],
    log: Path,
    token: str,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: bytes = b"",
    talks: bool = False,
) -> Started:
    """Start a process in a session of its own: Ctrl-C in the terminal does not reach it.

    ``env`` is its environment without the token, by default this process's. It reads ``stdin`` and
    appends what it prints to ``log``, which only its owner can read; a large log is renamed to
    ``<name>.old`` first. A process that ``talks`` has pipes instead, and logs only what it prints
    to stderr. Raises OSError if it cannot be started.
    """
    make_private_folder(log.parent)
    if log.exists() and log.stat().st_size > _MOST_BYTES:
        log.replace(log.with_suffix(".old"))
    with open_private(log, "ab") as output:
        tail = LogTail(log)
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if talks or stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE if talks else output,
            stderr=output,
            cwd=cwd,
            env={**(os.environ if env is None else env), _TOKEN: token, "SPT_NOENV": "1"},
            start_new_session=True,
        )
    if stdin:
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin as pipe:  # it ended: its log says why
            pipe.write(stdin)
    return Started(process, token, tail)


def ask_health(root: str, token: str) -> Mapping[str, Any] | None:
    """Ask the server at a URL for its ``/health``; None if none answers that has the token."""
    import httpx

    challenge = new_token()
    try:
        asked = httpx.get(
            f"{root}/health", params={"challenge": challenge}, trust_env=False, verify=False
        )
        answer: Mapping[str, Any] = asked.json()
        proof = str(answer["proof"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None
    return answer if hmac.compare_digest(proof, _compute_proof(token, challenge)) else None


def prove_start(challenge: str) -> str | None:
    """Prove that this process was started with its token; None if it was started without one."""
    token = os.environ.get(_TOKEN)
    return _compute_proof(token, challenge) if token else None


def _compute_proof(token: str, challenge: str) -> str:
    """Compute the answer to a challenge, which takes the token and does not reveal it."""
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
    token: str, *, patience_s: float, hurry: Callable[[], bool] = lambda: False
) -> int:
    """End all processes that carry a token; returns how many had to be killed.

    The topmost are asked to stop, and stop their children. What is left after ``patience_s``
    seconds, or once ``hurry`` is true, is killed. Raises EngineUnavailable if some survive even
    that.
    """
    import psutil

    found = find_processes(token)
    own = {process.pid for process in found}
    for process in found:
        with suppress(psutil.Error):
            if process.ppid() not in own:
                process.terminate()
    deadline = time.monotonic() + patience_s
    while (left := find_processes(token)) and time.monotonic() < deadline and not hurry():
        time.sleep(TICK_S)
    killed = len(left)
    deadline = time.monotonic() + _DEATH_S
    while left:
        if time.monotonic() > deadline:
            numbers = ", ".join(str(process.pid) for process in left)
            raise EngineUnavailable(
                f"the processes {numbers} do not die",
                hint="a driver may hold them: look at the system's log, or restart the machine",
            )
        for process in left:
            with suppress(psutil.Error):
                process.kill()
        time.sleep(TICK_S)
        left = find_processes(token)
    return killed
