"""Ctrl-C while native code holds the interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mgl.cli.output import INTERRUPTED
from tests.cli.test_interrupted import hear_ctrl_c
from tests.patience import PATIENCE_S, wait_until

STUCK = """
import ctypes, os, sys
from mgl.cli.guard import guard_command
guard_command(["ask"])
print(os.getpid(), flush=True)
ctypes.PyDLL(None).sleep(600)  # keeps the interpreter to itself, as an engine's step does
"""


def start(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hear_ctrl_c,
    )


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists() and "State:\tZ" not in _status(pid)


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "State:\tZ"


@pytest.mark.skipif(sys.platform != "linux", reason="the guard is for Linux")
@pytest.mark.parametrize(
    ("stop", "code"), [(signal.SIGINT, INTERRUPTED), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_stuck_command_ends_with_its_guard(stop: signal.Signals, code: int) -> None:
    process = start(STUCK)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    assert child != process.pid
    os.kill(process.pid, stop)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    wait_until(lambda: not is_alive(child))


@pytest.mark.parametrize("word", ["sys.exit(6)", "os._exit(6)"])
def test_the_guard_ends_as_its_command_does(word: str) -> None:
    program = (
        f"import os, sys\nfrom mgl.cli.guard import guard_command\nguard_command(['ask'])\n{word}"
    )
    process = start(program)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 6
