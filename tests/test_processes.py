from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mgl.processes import (
    Started,
    end_processes,
    find_processes,
    holds_port,
    new_token,
    start,
)
from tests.patience import PATIENCE_S, wait_until

STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "600"])
print("ready", flush=True)
time.sleep(600)
"""
NESTING = """
import sys, time
from pathlib import Path
from mgl.processes import start
start(["sleep", "600"], Path(sys.argv[1]), sys.argv[2])
time.sleep(600)
"""
LISTENING = """
import socket, time
with socket.create_server(("127.0.0.1", 0)) as taken:
    print(taken.getsockname()[1], flush=True)
    time.sleep(600)
"""


def start_python(folder: Path, program: str, *words: str) -> Started:
    command = [sys.executable, "-S", "-c", program, *words]
    return start(command, folder / "log.txt", new_token())


def wait_for_line(started: Started) -> str:
    lines = started.wait_for(lambda: started.log.read_lines() or None, PATIENCE_S)
    assert lines is not None
    return lines[0]


def test_a_process_is_ended_with_its_children_and_nothing_else(tmp_path: Path) -> None:
    stubborn, other = start_python(tmp_path, STUBBORN), new_token()
    with subprocess.Popen(["sleep", "600"], env={"MGL_SERVER": other}) as bystander:
        assert wait_for_line(stubborn) == "ready"
        assert len(find_processes(stubborn.token)) == 2
        assert end_processes(new_token(), patience_s=0.0) == 0
        assert stubborn.end(patience_s=0.0) >= 1
        assert stubborn.has_ended
        assert find_processes(stubborn.token) == []
        assert [one.pid for one in find_processes(other)] == [bystander.pid]
        bystander.kill()


def test_what_a_process_starts_by_itself_is_not_ended_with_it(tmp_path: Path) -> None:
    inner = new_token()
    outer = start(
        [sys.executable, "-c", NESTING, str(tmp_path / "inner.txt"), inner],
        tmp_path / "outer.txt",
        new_token(),
    )
    try:
        wait_until(lambda: find_processes(inner) or outer.has_ended)
        outer.end(patience_s=PATIENCE_S)
        assert outer.has_ended
        assert len(find_processes(inner)) == 1
    finally:
        end_processes(inner, patience_s=0.0)


def test_waiting_ends_with_the_process_or_the_time(tmp_path: Path) -> None:
    sleeper = start_python(tmp_path, "import time; time.sleep(600)")
    assert sleeper.wait_for(lambda: None, limit_s=0.0) is None
    assert sleeper.wait_for(lambda: "found", limit_s=0.0) == "found"
    sleeper.end(patience_s=PATIENCE_S)
    assert sleeper.wait_for(lambda: None) is None
    left = tmp_path / "left.txt"
    writer = start_python(tmp_path, "import sys; open(sys.argv[1], 'w').write('done')", str(left))
    assert writer.wait_for(lambda: left.read_text() if writer.has_ended else None) == "done"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; print('first\\nlast'); sys.exit(1)", "last"),
        ("raise ValueError('broken ' * 100)", "ValueError: " + "broken " * 41 + "b"),
        ("", "it does not say why"),
    ],
)
def test_its_log_says_why_it_ended(tmp_path: Path, program: str, said: str) -> None:
    (tmp_path / "log.txt").write_text("of the process before\n")
    started = start_python(tmp_path, program)
    started.process.wait(PATIENCE_S)
    assert started.log.read_last_line() == said


def test_it_reads_what_it_is_given_even_where_it_does_not(tmp_path: Path) -> None:
    command, log = [sys.executable, "-S", "-c"], tmp_path / "log.txt"
    counting = [*command, "import sys; print(len(sys.stdin.read()))"]
    reader = start(counting, log, new_token(), stdin=b"x" * 300_000)
    assert reader.process.wait(PATIENCE_S) == 0
    assert log.read_text() == "300000\n"
    deaf = start([*command, "raise SystemExit(3)"], log, new_token(), stdin=b"x" * 300_000)
    assert deaf.process.wait(PATIENCE_S) == 3


def test_a_port_is_held_by_the_process_that_listens_there(tmp_path: Path) -> None:
    listening = start_python(tmp_path, LISTENING)
    try:
        port = int(wait_for_line(listening))
        assert holds_port(listening.token, port)
        assert not holds_port(new_token(), port)
        assert not holds_port(listening.token, port + 1)
    finally:
        listening.end(patience_s=PATIENCE_S)
