"""Ctrl-C and kill -9 in the middle of a build, then the same command again."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import SERVED, Mgl
from tests.cli.server import Server
from tests.patience import PATIENCE_S

QUESTION = "How many met?"


def command(book: Path, server: Server) -> list[str]:
    return [
        *(sys.executable, "-m", "mgl", "ask", str(book), QUESTION, "--json"),
        *("--model", SERVED, "--base-url", server.url, "--set", "chunk_tokens=24"),
    ]


def hear_ctrl_c() -> None:
    """A shell starts what it runs in the background deaf to Ctrl-C, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(book: Path, server: Server, home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(book, server),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "MGL_HOME": str(home)},
        preexec_fn=hear_ctrl_c,
        start_new_session=True,
    )


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_build_goes_on_where_it_was(
    mgl: Mgl,
    book: Path,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: signal.Signals,
) -> None:

    def run(home: str, *words: str) -> Any:
        monkeypatch.setenv("MGL_HOME", str(tmp_path / home))
        done = mgl(*words, code=0)
        return json.loads(done.stdout)

    words = command(book, server)[3:]
    whole = run("whole", *words)
    all_calls = sorted(server.done)
    assert len(all_calls) >= 5

    server.seen.clear()
    server.done.clear()
    server.stall_after = 2
    process = start(book, server, tmp_path / "stopped")
    server.wait_for(3)
    process.send_signal(stop)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    if stop == signal.SIGINT:
        assert process.returncode == 130
        assert "hint: " in stderr
        assert "Traceback" not in stderr
    with closing(sqlite3.connect(tmp_path / "stopped" / "mgl.sqlite")) as connection:
        done = connection.execute("SELECT chunk FROM steps ORDER BY chunk").fetchall()
        logged = connection.execute("SELECT count(*) FROM llm_calls").fetchone()
    assert done == [(0,), (1,)]
    assert logged == (2,)

    server.stall_after = None
    resumed = run("stopped", *words)
    assert sorted(server.done) == all_calls
    assert resumed["usage"]["calls"] == len(all_calls) - 2
    assert {**resumed, "usage": 0} == {**whole, "usage": 0}
    exports = [run(home, "export", whole["memory_id"]) for home in ("stopped", "whole")]
    assert exports[0] == exports[1]


def test_the_second_of_two_that_ask_the_same_takes_the_first_ones_answer(
    book: Path, server: Server, tmp_path: Path
) -> None:
    server.stall_after = 1
    first = start(book, server, tmp_path / "home")
    server.wait_for(2)
    os.killpg(first.pid, signal.SIGSTOP)  # with its guard, until the second is seen to wait
    try:
        second = start(book, server, tmp_path / "home")
        assert second.stderr is not None
        assert any("another process" in line for line in second.stderr)
    finally:
        server.go_on()
        os.killpg(first.pid, signal.SIGCONT)
    said = [process.communicate(timeout=PATIENCE_S) for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    one, other = (json.loads(stdout) for stdout, _ in said)
    assert other["answer"] == one["answer"]
    assert other["usage"]["calls"] == 0
    assert one["usage"]["calls"] == len(server.seen)
