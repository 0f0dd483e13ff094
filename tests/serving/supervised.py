"""A supervisor in a process of its own, as the command line runs one, but in a hurry."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mgl import processes
from mgl.serving import records
from mgl.serving.plan import LaunchPlan
from mgl.serving.records import ServerRecord
from tests.patience import PATIENCE_S, wait_until

PROGRAM = """
import json, sys
from pathlib import Path
from pydantic import TypeAdapter
from mgl.serving.plan import LaunchPlan
from mgl.serving.supervisor import Rhythm, Supervisor

given = json.loads(sys.stdin.read())
plan = TypeAdapter(LaunchPlan).validate_python(given["plan"])
rhythm = Rhythm(**{"first_delay_s": 0.1, "last_delay_s": 0.2, "stop_s": 0.5, **given["rhythm"]})
final = Supervisor(plan, Path(sys.argv[1]), rhythm=rhythm).run()
print(json.dumps([final.state, final.last_error, final.hint, final.restarts]))
"""


class Supervised:
    """A running supervisor; ``with`` ends it and everything it started."""

    def __init__(self, home: Path, plan: LaunchPlan, **rhythm: float) -> None:
        self.home, self.port = home, plan.port
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_signals,
        )
        assert self.process.stdin is not None
        given = {"plan": TypeAdapter(LaunchPlan).dump_python(plan, mode="json"), "rhythm": rhythm}
        with self.process.stdin as stdin:
            stdin.write(json.dumps(given))
        self.process.stdin = None

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *_: object) -> None:
        if (record := records.read_record(self.home, self.port)) is not None:
            self.process.kill()
            self.process.wait()
            processes.end_processes(record.token, patience_s=0.0)
        else:
            self.process.kill()
        self.process.communicate()

    def until(self, true: Callable[[ServerRecord], bool]) -> ServerRecord:
        """The record once it is so."""
        found: list[ServerRecord] = []

        def looked() -> bool:
            record = records.read_record(self.home, self.port)
            if record is not None and true(record):
                found.append(record)
            return bool(found)

        wait_until(looked)
        return found[0]

    def ready(self, restarts: int = 0) -> ServerRecord:
        return self.until(lambda one: one.state == "ready" and one.restarts == restarts)

    def end(self) -> tuple[Any, ...]:
        """Wait for its end: state, error, hint and restarts."""
        said, complained = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, complained
        return tuple(json.loads(said))


def hear_signals() -> None:
    """A shell starts what it runs in the background deaf to Ctrl-C, and children inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
