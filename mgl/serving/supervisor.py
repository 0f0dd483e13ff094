"""Starts a server, watches it, restarts it after a crash, and ends it.

    final = Supervisor(plan, home, report=print).run()    # until it is stopped, or gives up
    record = start_detached(plan, home, report=print)     # leaves it running once it is ready

The server gets a key of its own, a log of its own and a session of its own, so that Ctrl-C in the
terminal reaches only the supervisor. After a crash it is restarted, with a delay that doubles and
is jittered, as long as a restart can help and there were few within a while. Its state is kept in
its record (``mgl.serving.records``) and passed to ``report``.

A supervisor stops on SIGTERM, SIGINT or SIGHUP, or on ``request_stop``, which leaves a file that it
reads. If the supervisor itself is killed, the server lives on and is found by its token
(``mgl.processes``).
"""

from __future__ import annotations

import os
import random
import secrets
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Final

import httpx

from mgl.errors import EngineUnavailable, UsageError
from mgl.llm.capabilities import forget_capabilities
from mgl.models.files import write_whole
from mgl.processes import TICK_S, LogTail, Started, end_processes, holds_port, new_token, start
from mgl.serving.logs import Failure, count_oom_kills, explain_failure, find_stage
from mgl.serving.plan import LaunchPlan
from mgl.serving.records import (
    ServerRecord,
    list_running,
    lock_port,
    read_record,
    remove_record,
    stop_file,
    write_record,
)

_POLL_S: Final = 0.3
_READY_S: Final = 5.0
_TAIL_BYTES: Final = 65536
_KEYS: Final = ("MGL_API_KEY", "MGL_PROXY_KEY", "MGL_UP_KEY")  # of others
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Rhythm:
    """How patient a supervisor is, in seconds and counts.

    ``restarts`` are allowed within ``window_s``; a server that was never ready is restarted only
    once. The delay before a restart starts at ``first_delay_s`` and doubles up to ``last_delay_s``,
    with a jitter of half of it either way.
    """

    restarts: int = 4
    window_s: float = 900.0
    first_delay_s: float = 2.0
    last_delay_s: float = 60.0
    stop_s: float = 30.0


class Supervisor:
    """Looks after one server; ``report`` gets its record whenever it changes."""

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
            token=new_token(),
            supervisor_pid=os.getpid(),
            log=home / "servers" / "log" / f"{plan.port}.log",
            adapters=dict(plan.adapters),
        )
        self._stop_file = stop_file(home, plan.port)
        self._stops = 0
        self._was_ready = False

    def run(self) -> ServerRecord:
        """Look after the server until it is stopped or has failed for good.

        Returns its last record: ``stopped``, or ``failed`` with its error, which stays on disk
        until a command has reported it. Raises UsageError if another supervisor has the port.
        """
        port = self._plan.port
        with lock_port(self._home, port) as locked:
            if not locked:
                raise port_taken(port, read_record(self._home, port))
            self._stop_file.unlink(missing_ok=True)
            forget_capabilities(self._home, self._plan.base_url)
            with self._catch_signals():
                return self._supervise()

    def stop(self) -> None:
        """Ask the supervisor to stop; asked twice, it does not wait for the server."""
        self._stops += 1

    def _supervise(self) -> ServerRecord:
        restarts: deque[float] = deque()
        rhythm = self._rhythm
        self._update(state="starting")
        while True:
            failure = self._serve_once()
            if failure is None:
                self._update(state="stopped", progress="")
                remove_record(self._home, self._plan.port)
                return self._record
            now = time.monotonic()
            while restarts and now - restarts[0] > rhythm.window_s:
                restarts.popleft()
            allowed = rhythm.restarts if self._was_ready else 1
            if not failure.restart_helps or len(restarts) >= allowed:
                message = failure.message
                if restarts:
                    times = "once" if len(restarts) == 1 else f"{len(restarts)} times"
                    message += f" (restarted {times} without success)"
                self._update(state="failed", progress="", last_error=message, hint=failure.hint)
                return self._record
            delay = min(rhythm.last_delay_s, rhythm.first_delay_s * 2 ** len(restarts))
            delay *= random.uniform(0.5, 1.5)
            restarts.append(now)
            self._update(
                state="restarting",
                progress=f"in {delay:.0f} s",
                restarts=self._record.restarts + 1,
                last_error=failure.message,
                hint=failure.hint,
            )
            self._pause(delay)

    def _serve_once(self) -> Failure | None:
        """Run the server until it ends: why it crashed, or None if it was asked to stop."""
        if self._is_stopping():
            return None
        kills, was_ready = count_oom_kills(), False
        env = {
            **{name: os.environ[name] for name in os.environ if name not in _KEYS},
            "PYTHONUNBUFFERED": "1",
            **self._plan.env,
            "VLLM_API_KEY": self._record.api_key,
        }
        try:
            server = start(self._plan.command, self._record.log, self._record.token, env=env)
        except OSError as error:
            return Failure(
                f"{self._plan.command[0]} cannot be started: {error.strerror or error}",
                "name the Python that has vLLM with --python",
            )
        try:
            while not server.has_ended and not self._is_stopping():
                was_ready = self._check_progress(server.log, was_ready)
                self._pause(_POLL_S, server)
        finally:
            server.end(patience_s=self._rhythm.stop_s, hurry=lambda: self._stops > 1)
        code = server.process.wait()
        if self._is_stopping():
            return None
        killed = None if kills is None else (count_oom_kills() or kills) - kills
        return explain_failure(
            server.log.read_end(_TAIL_BYTES), code, was_ready=was_ready, oom_kills=killed
        )

    def _check_progress(self, tail: LogTail, ready: bool) -> bool:
        """Update the record with what changed; returns whether the server is ready."""
        stages = [stage for line in tail.read_lines() if (stage := find_stage(line))]
        if ready:
            return True
        if is_ready(self._record):
            self._was_ready = True
            self._update(state="ready", progress="")
            return True
        if stages and stages[-1] != self._record.progress:
            self._update(progress=stages[-1])
        return False

    def _pause(self, seconds: float, server: Started | None = None) -> None:
        """Sleep, but no longer than until a stop is requested or the server has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self._is_stopping():
            if server is not None and server.has_ended:
                return
            time.sleep(TICK_S)

    def _is_stopping(self) -> bool:
        if not self._stops and self._stop_file.exists():
            if self._stop_file.read_text(encoding="utf-8") == self._record.token:
                self.stop()
            self._stop_file.unlink(missing_ok=True)
        return self._stops > 0

    def _update(self, **changes: Any) -> None:
        self._record = replace(self._record, **changes)
        write_record(self._home, self._record)
        self._report(self._record)

    @contextmanager
    def _catch_signals(self) -> Iterator[None]:
        def handle(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        # An ignored signal stays ignored, as nohup and background jobs have it.
        caught = [number for number in _SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        before = {number: signal.signal(number, handle) for number in caught}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def is_ready(record: ServerRecord) -> bool:
    """Whether the server itself, not another one on its port, answers and serves its model."""
    headers = {"Authorization": f"Bearer {record.api_key}"}
    try:
        with httpx.Client(headers=headers, timeout=_READY_S, trust_env=False, verify=False) as http:
            if not holds_port(record.token, record.port):
                return False  # or the key would be sent to another
            health = http.get(httpx.URL(record.base_url).join("/health"))
            if health.status_code != httpx.codes.OK:
                return False
            listed = http.get(f"{record.base_url}/models").json()
        return any(entry["id"] == record.served_name for entry in listed["data"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return False


def request_stop(home: Path, record: ServerRecord, *, patience_s: float = 45.0) -> None:
    """Stop a server, with or without its supervisor, and wait until nothing is left of it.

    ``patience_s`` is the time for its supervisor, or without one for the server itself before it is
    killed. Raises EngineUnavailable if its supervisor lives and does not answer.
    """
    path = stop_file(home, record.port)
    write_whole(path, record.token.encode())
    deadline = time.monotonic() + patience_s
    while any(one.token == record.token for one in list_running(home)):
        if time.monotonic() > deadline:
            path.unlink(missing_ok=True)
            raise EngineUnavailable(
                f"the supervisor of {record.describe()} does not answer",
                hint=f"end process {record.supervisor_pid}, then run the command again",
            )
        time.sleep(TICK_S)
    end_processes(record.token, patience_s=patience_s)
    with lock_port(home, record.port) as is_abandoned:
        if is_abandoned:
            path.unlink(missing_ok=True)
            remove_record(home, record.port)


def port_taken(port: int, record: ServerRecord | None) -> UsageError:
    """The error of a second server on one port, which names the first."""
    owner = "a server of yours that is about to start"
    if record is not None:
        owner = f"your own server {record.model} ({record.state})"
    return UsageError(
        f"port {port} is taken by {owner}",
        hint=f"choose another with --port, or end that one: `mgl serve stop --port {port}`",
    )


def start_detached(
    plan: LaunchPlan, home: Path, *, report: Callable[[ServerRecord], None]
) -> ServerRecord:
    """Start a server and leave it running; returns its record once it is ready or has failed.

    Its supervisor is another Python in a session of its own, which reads the plan from standard
    input and logs to ``servers/log/<port>.supervisor.log``. ``report`` gets the record whenever it
    changes. Whatever ends the wait, Ctrl-C or a signal that exits, stops the server. Raises
    EngineUnavailable if the supervisor dies.
    """
    from pydantic import TypeAdapter

    path = home / "servers" / "log" / f"{plan.port}.supervisor.log"
    command = [sys.executable, "-m", "mgl.serving.supervisor", str(home)]
    plan_json = TypeAdapter(LaunchPlan).dump_json(plan)
    supervisor = start(command, path, new_token(), stdin=plan_json)
    last: ServerRecord | None = None

    def find_final() -> ServerRecord | None:
        nonlocal last
        record = read_record(home, plan.port)
        if record is None or record.supervisor_pid != supervisor.process.pid:
            return None
        if record != last:
            last = record
            report(record)
        return record if record.state in ("ready", "failed") else None

    try:
        final = supervisor.wait_for(find_final)
    except (KeyboardInterrupt, SystemExit):
        supervisor.process.terminate()
        supervisor.process.wait()
        raise
    if final is None:
        raise EngineUnavailable(
            f"the supervisor ended: {supervisor.log.read_last_line()}",
            hint=f"see {path}; without --detach it runs in this terminal",
        )
    return final


def _main() -> None:
    from pydantic import TypeAdapter

    plan = TypeAdapter(LaunchPlan).validate_json(sys.stdin.buffer.read())
    Supervisor(plan, Path(sys.argv[1])).run()


if __name__ == "__main__":
    _main()
