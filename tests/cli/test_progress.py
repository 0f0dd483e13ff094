from __future__ import annotations

import os
import pty
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from mgl.cli import progress
from mgl.cli.output import print_json
from tests.patience import PATIENCE_S

BAR = """
import time
from mgl.cli.progress import open_observer
with open_observer() as hears:
    print(type(hears).__name__)
    hears.note("before")
    for done in range(5):
        hears.progress("build", done, 4)
        time.sleep(0.15)
    hears.note("after [bold]")
    hears.hush()
    hears.progress("while text streams", 1, 4)
    time.sleep(0.15)
    print("streamed")
    hears.resume()
    hears.progress("next", 1, 4)
"""


def test_lines_say_begin_end_and_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.LineObserver() as hears:
        for done in range(11):
            hears.progress("build", done, 10)
            now[0] += 4
        hears.progress("build", 10, 10)  # once more
        hears.note("all read")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "build: 0 of 10",
        "build: 3 of 10, about 28 s left",
        "build: 6 of 10, about 16 s left",
        "build: 9 of 10, about 4 s left",
        "build: 10 of 10",
        "all read",
    ]


def test_a_note_is_printed_once_until_a_new_line_is_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress.LineObserver() as hears:
        for note in ("using a", "using b", "using a"):
            hears.note(note)
        hears.hush()
        hears.resume()
        hears.note("using a")
    assert capsys.readouterr().err.splitlines() == ["using a", "using b", "using a"]


def test_a_stage_that_starts_over_is_estimated_anew(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    hears = progress.LineObserver()
    for done in (0, 10):
        hears.progress("reply", done, 100)
        now[0] += 1000
    for done in (0, 10):
        hears.progress("reply", done, 100)
        now[0] += 20
    assert "about 180 s left" in capsys.readouterr().err


def test_a_terminal_gets_a_bar_with_the_time_left_and_stdout_stays_clean() -> None:
    controller, terminal = pty.openpty()
    done = subprocess.Popen(
        [sys.executable, "-c", BAR],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    stdout, _ = done.communicate(timeout=PATIENCE_S)
    drawn = b""
    while True:
        try:
            part = os.read(controller, 65536)
        except OSError:
            break
        if not part:
            break
        drawn += part
    os.close(controller)
    assert done.returncode == 0
    assert stdout == b"BarObserver\nstreamed\n"
    for expected in (b"before", b"build", b"4/4", b"0:00:0", b"left", b"after [bold]", b"next"):
        assert expected in drawn
    assert b"while text streams" not in drawn
    assert b"build" not in drawn[drawn.index(b"next") :], "a bar that was wiped is not drawn again"


def test_no_line_is_printed_while_text_streams(capsys: pytest.CaptureFixture[str]) -> None:
    hears = progress.LineObserver()
    hears.progress("reply written (tokens)", 1, 100)
    hears.hush()
    hears.progress("reply written (tokens)", 100, 100)
    hears.note("a note")
    assert capsys.readouterr().err == "reply written (tokens): 1 of 100\n"
    hears.resume()
    hears.progress("build", 1, 4)
    assert capsys.readouterr().err == "a note\nbuild: 1 of 4\n"


def test_a_report_of_another_thread_ends_before_text_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bar that was being drawn while the first words came stood in the middle of them."""
    drawing, go_on = threading.Event(), threading.Event()

    def draw(*_: object) -> None:
        drawing.set()
        go_on.wait()

    monkeypatch.setattr(progress.LineObserver, "_draw", draw)
    hears = progress.LineObserver()
    with ThreadPoolExecutor(2) as threads:
        report = threads.submit(hears.progress, "reply written (tokens)", 1, 100)
        drawing.wait()
        hush = threads.submit(hears.hush)
        time.sleep(0.05)
        assert not hush.done()
        go_on.set()
        hush.result()
        assert report.done()


def test_json_survives_what_the_terminal_cannot_show(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_json({"quote": "“é”"})
    print_json({"quote": "\ud83d"})
    out = capsys.readouterr().out
    assert "“é”" in out
    assert '"\\ud83d"' in out
