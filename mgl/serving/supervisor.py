"""Starts a server, watches it, starts it again after a crash, and ends it.

    final = Supervisor(plan, home, report=print).run()    # until it is stopped, or gives up

The server gets a key that is made for it, and writes to a log of its own. It runs in a session of
its own, so that a Ctrl-C in the terminal reaches the supervisor alone. After a crash it is started
again, after a delay that doubles and is jittered, as long as a restart can help and there were few
restarts within a while; the clock for this is the monotonic one, which nobody sets. How things are
is kept in the run file (``mgl.serving.runfile``) and told to ``report``.

Stopped it is by SIGTERM, SIGINT or SIGHUP, or by ``request_stop``, which leaves a file that the
supervisor reads. Should the supervisor itself be killed, the server lives on and is found by the
token that its processes carry (``mgl.serving.processes``).
"""

from __future__ import annotations

import json
import os
import random
import secrets
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from types import FrameType
from typing import Any, Final
from urllib.parse import urlsplit

from mgl.errors import EngineUnavailable, UsageError
from mgl.llm.capabilities import forget_capabilities
from mgl.serving import processes, runfile
from mgl.serving.failures import Failure, explain, oom_kills
from mgl.serving.logs import LogTail, open_log
from mgl.serving.plan import LaunchPlan
from mgl.serving.runfile import ServerRecord
from mgl.serving.startup import stage_of

__all__ = ["Rhythm", "Supervisor", "is_ready", "port_taken", "request_stop"]

_TICK_S: Final = 0.1
_LOOK_S: Final = 0.3
_ASK_S: Final = 5.0
_TAIL_BYTES: Final = 65536
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Seconds and counts: how patient a supervisor is.

    ``restarts`` are allowed within ``window_s``; a server that was never ready is started again
    only once. The delay before a restart starts at ``first_delay_s`` and doubles up to
    ``last_delay_s``, each between half and one and a half times that.
    """

    restarts: int = 4
    window_s: float = 900.0
    first_delay_s: float = 2.0
    last_delay_s: float = 60.0
    stop_s: float = 30.0


class Supervisor:
    """Looks after one server. ``report`` hears the record whenever it changes."""

    def __init__(
        self,
        plan: LaunchPlan,
        home: Path,
        *,
        report: Callable[[ServerRecord], None] = lambda _record: None,
        rhythm: Rhythm | None = None,
    ) -> None:
        self._plan = plan
        self._home = home
        self._report = report
        self._rhythm = rhythm or Rhythm()
        self._record = ServerRecord(
            profile=plan.profile,
            model=plan.model,
            task=plan.task,
            served_name=plan.served_name,
            base_url=plan.base_url,
            api_key=secrets.token_urlsafe(32),
            token=secrets.token_hex(16),
            supervisor_pid=os.getpid(),
            log=home / "servers" / "log" / f"{plan.port}.log",
            adapters=dict(plan.adapters),
        )
        self._asked_to_stop = 0
        self._was_ready = False

    def run(self) -> ServerRecord:
        """Look after the server until it is stopped or has failed for good.

        Returns its last record: ``stopped``, or ``failed`` with its error, which stays in the run
        file until somebody has told it. Raises UsageError where another supervisor has the port.
        """
        with runfile.hold(self._home, self._plan.port) as held:
            if not held:
                port = self._plan.port
                raise port_taken(port, runfile.read(self._home, port))
            _stop_file(self._home, self._plan.port).unlink(missing_ok=True)
            forget_capabilities(self._home, self._plan.base_url)
            with self._hearing_signals():
                return self._look_after()

    def stop(self) -> None:
        """Ask it to stop; asked twice, it does not wait for the server."""
        self._asked_to_stop += 1

    def _look_after(self) -> ServerRecord:
        restarts: deque[float] = deque()
        rhythm = self._rhythm
        self._tell(state="starting")
        while True:
            failure = self._serve_once()
            if failure is None:
                self._tell(state="stopped", progress="")
                runfile.forget(self._home, self._plan.port)
                return self._record
            now = time.monotonic()
            while restarts and now - restarts[0] > rhythm.window_s:
                restarts.popleft()
            allowed = rhythm.restarts if self._was_ready else 1
            if not failure.restart_helps or len(restarts) >= allowed:
                self._tell(
                    state="failed",
                    progress="",
                    last_error=_with_count(failure.message, len(restarts)),
                    hint=failure.hint,
                )
                return self._record
            delay = min(rhythm.last_delay_s, rhythm.first_delay_s * 2 ** len(restarts))
            delay *= random.uniform(0.5, 1.5)
            restarts.append(now)
            self._tell(
                state="restarting",
                progress=f"in {delay:.0f} s",
                restarts=self._record.restarts + 1,
                last_error=failure.message,
                hint=failure.hint,
            )
            self._pause(delay)

    def _serve_once(self) -> Failure | None:
        """Start the server and stay with it to its end: why it crashed, None where it was asked."""
        if self._stopping():
            return None
        token, kills = self._record.token, oom_kills()
        ready = False
        with open_log(self._record.log) as log:
            tail = LogTail(self._record.log)
            try:
                child = self._start(log)
            except OSError as error:
                return Failure(
                    "command",
                    f"{self._plan.command[0]} cannot be started: {error.strerror or error}",
                    "name the Python that has vLLM with --python",
                )
            try:
                while child.poll() is None and not self._stopping():
                    ready = self._progress(tail, ready)
                    self._pause(_LOOK_S, child)
            finally:
                processes.end(
                    token,
                    patience_s=self._rhythm.stop_s,
                    hurry=lambda: self._asked_to_stop > 1,
                    reap=child.poll,
                )
        code = child.wait()
        if self._stopping():
            return None
        killed = None if kills is None else (oom_kills() or kills) - kills
        return explain(tail.end(_TAIL_BYTES), code, was_ready=ready, oom_kills=killed)

    def _start(self, log: Any) -> subprocess.Popen[bytes]:
        env = {
            **os.environ,
            "PYTHONUNBUFFERED": "1",
            **self._plan.env,
            "VLLM_API_KEY": self._record.api_key,
            **processes.marks(self._record.token),
        }
        return subprocess.Popen(
            self._plan.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
        )

    def _progress(self, tail: LogTail, ready: bool) -> bool:
        """Tell what changed since the last look; whether the server is ready."""
        stages = [stage for line in tail.lines() if (stage := stage_of(line))]
        if ready:
            return True
        if is_ready(self._record):
            self._was_ready = True
            self._tell(state="ready", progress="")
            return True
        if stages and stages[-1] != self._record.progress:
            self._tell(progress=stages[-1])
        return False

    def _pause(self, seconds: float, child: subprocess.Popen[bytes] | None = None) -> None:
        """Wait so long, less where it is to stop or the child has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self._stopping():
            if child is not None and child.poll() is not None:
                return
            time.sleep(_TICK_S)

    def _stopping(self) -> bool:
        path = _stop_file(self._home, self._plan.port)
        if not self._asked_to_stop and path.exists():
            if path.read_text(encoding="utf-8") == self._record.token:
                self.stop()
            path.unlink(missing_ok=True)
        return self._asked_to_stop > 0

    def _tell(self, **changes: Any) -> None:
        self._record = replace(self._record, **changes)
        runfile.write(self._home, self._record)
        self._report(self._record)

    @contextmanager
    def _hearing_signals(self) -> Iterator[None]:
        def heard(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        # One that is ignored, as nohup and background jobs have it, stays ignored.
        heeded = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, heard) for number in heeded}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def is_ready(record: ServerRecord) -> bool:
    """Whether the server itself, and no other on its port, answers and serves its model."""
    place = urlsplit(record.base_url)
    connection = HTTPConnection(str(place.hostname), record.port, timeout=_ASK_S)
    headers = {"Authorization": f"Bearer {record.api_key}"}
    try:
        connection.request("GET", "/health", headers=headers)
        answer = connection.getresponse()
        answer.read()
        if answer.status != HTTPStatus.OK:
            return False
        connection.request("GET", f"{place.path}/models", headers=headers)
        listed = json.loads(connection.getresponse().read())
        return any(entry["id"] == record.served_name for entry in listed["data"])
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return False
    finally:
        connection.close()


def request_stop(home: Path, record: ServerRecord, *, patience_s: float = 45.0) -> None:
    """Stop a server, whether or not its supervisor still lives, and wait until nothing is left.

    ``patience_s`` is how long its supervisor may take, or without one the server itself before it
    is killed. Raises EngineUnavailable where its supervisor lives and does not answer.
    """
    path = _stop_file(home, record.port)
    path.write_text(record.token, encoding="utf-8")
    until = time.monotonic() + patience_s
    while any(one.token == record.token for one in runfile.running(home)):
        if time.monotonic() > until:
            path.unlink(missing_ok=True)
            raise EngineUnavailable(
                f"the supervisor of {record.describe()} does not answer",
                hint=f"end process {record.supervisor_pid}, then run the command again",
            )
        time.sleep(_TICK_S)
    processes.end(record.token, patience_s=patience_s)
    with runfile.hold(home, record.port) as abandoned:
        if abandoned:
            path.unlink(missing_ok=True)
            runfile.forget(home, record.port)


def port_taken(port: int, record: ServerRecord | None) -> UsageError:
    """The error of a second server on one port, which says who has it."""
    who = "a server of yours that is about to start"
    if record is not None:
        who = f"your own server {record.model} ({record.state})"
    return UsageError(
        f"port {port} is taken by {who}",
        hint=f"give another with --port, or end that one: `mgl serve stop --port {port}`",
    )


def _with_count(message: str, restarts: int) -> str:
    if not restarts:
        return message
    times = "once" if restarts == 1 else f"{restarts} times"
    return f"{message} (started again {times}, in vain)"


def _stop_file(home: Path, port: int) -> Path:
    return home / "servers" / "run" / f"{port}.stop"
