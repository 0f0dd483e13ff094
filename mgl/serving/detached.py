"""A supervisor that outlives the command that started it.

    record = start_detached(plan, home, report=print)    # returns when the server is ready

It is a Python of its own, in a session of its own, that reads its plan from standard input:
``python -m mgl.serving.detached HOME``. What it has to say it writes to the run file, and what
should never happen to ``servers/log/<port>.supervisor.log``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mgl.errors import EngineUnavailable
from mgl.serving import runfile
from mgl.serving.logs import LogTail, open_log
from mgl.serving.plan import LaunchPlan
from mgl.serving.runfile import ServerRecord
from mgl.serving.supervisor import Supervisor

__all__ = ["start_detached"]

_TICK_S: Final = 0.1


def start_detached(
    plan: LaunchPlan, home: Path, *, report: Callable[[ServerRecord], None]
) -> ServerRecord:
    """Start a server and leave it running; returns its record once it is ready or has failed.

    ``report`` hears the record whenever it changes. Interrupted meanwhile, it stops the server.
    Raises EngineUnavailable where the supervisor ends without saying why.
    """
    from pydantic import TypeAdapter

    path = home / "servers" / "log" / f"{plan.port}.supervisor.log"
    with open_log(path) as log:
        tail = LogTail(path)
        process = subprocess.Popen(
            [sys.executable, "-m", "mgl.serving.detached", str(home)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(TypeAdapter(LaunchPlan).dump_json(plan))
    try:
        last = _wait(process, home, plan.port, report)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    if last is not None:
        return last
    said = tail.end(2000).strip().splitlines()
    raise EngineUnavailable(
        f"the supervisor ended: {said[-1] if said else 'it does not say why'}",
        hint=f"{path} says more; without --detach it runs in this terminal",
    )


def _wait(
    process: subprocess.Popen[bytes],
    home: Path,
    port: int,
    report: Callable[[ServerRecord], None],
) -> ServerRecord | None:
    last = None
    while True:
        ended = process.poll() is not None
        record = runfile.read(home, port)
        if record is not None and record.supervisor_pid == process.pid and record != last:
            last = record
            report(record)
        if last is not None and last.state in ("ready", "failed"):
            return last
        if ended:
            return None
        time.sleep(_TICK_S)


def _main() -> None:
    from pydantic import TypeAdapter

    plan = TypeAdapter(LaunchPlan).validate_json(sys.stdin.buffer.read())
    Supervisor(plan, Path(sys.argv[1])).run()


if __name__ == "__main__":
    _main()
