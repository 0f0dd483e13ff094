"""Ctrl-C while native code holds the interpreter."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mgl.cli.output import INTERRUPTED
from tests.cli.test_interrupted import hear_ctrl_c
from tests.patience import PATIENCE_S, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard is for Linux")

STUCK = """
import ctypes, os, sys
from mgl.cli.guard import guard_command
guard_command(["ask"])
print(os.getpid(), flush=True)
ctypes.PyDLL(None).sleep(600)  # keeps the interpreter to itself, as an engine's step does
"""


def start(program: str, stdin: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=stdin,
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


@pytest.mark.parametrize("command", ["chat", "ask"])
def test_one_ctrl_c_stops_a_reply_and_not_its_chat(command: str) -> None:
    program = f"""
import sys, time
from mgl.cli import guard
guard.PATIENCE_S = 0.1
guard.guard_command(["{command}"])
try:
    print("replying", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    time.sleep({1 if command == "chat" else 600})
sys.exit(6)"""
    process = start(program)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == (6 if command == "chat" else INTERRUPTED)


def test_a_second_ctrl_c_ends_a_stuck_chat() -> None:
    process = start(STUCK.replace('["ask"]', '["chat"]'))
    assert process.stdout is not None
    process.stdout.readline()

    def press() -> bool:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
        return process.poll() is not None

    wait_until(press)
    process.communicate()
    assert process.returncode == INTERRUPTED


@pytest.mark.parametrize("returns", [True, False])
def test_a_chat_whose_prompt_is_back_outlives_two_ctrl_c(*, returns: bool) -> None:
    """A prompt reads the terminal key by key. Without one, the reply is taken to be stuck."""
    program = f"""
import sys, time, tty
from mgl.cli import guard
guard.AGAIN_S = 60
guard.guard_command(["chat"])
for _ in range(2):
    try:
        print("replying", flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        pass
if {returns}:
    tty.setraw(0)
time.sleep({2 if returns else 600})
sys.exit(6)"""
    terminal, inside = pty.openpty()
    with start(program, stdin=inside) as process:
        assert process.stdout is not None
        for _ in range(2):
            assert process.stdout.readline() == "replying\n"
            os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    os.close(terminal)
    os.close(inside)
    assert process.returncode == (6 if returns else INTERRUPTED)


@pytest.mark.parametrize("word", ["sys.exit(6)", "os._exit(6)"])
def test_the_guard_ends_as_its_command_does(word: str) -> None:
    program = (
        f"import os, sys\nfrom mgl.cli.guard import guard_command\nguard_command(['ask'])\n{word}"
    )
    process = start(program)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 6
