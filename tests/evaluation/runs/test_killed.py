"""Runs whose process is killed, and that are started again."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from mgl.evaluation.runs.manifest import Manifest
from tests.conformance.dying import FORKING
from tests.evaluation.trial import SMALL, Trial, result, rows, write_data

OPTIONS: dict[str, Any] = {"memories": ("direct", "mindgraph", "all=mindgraph"), "settings": SMALL}


def work(plugin: Path, home: Path, data: Path, out: Path, most: int) -> None:
    """Start or resume a run in this process, with a line in ``calls`` for each call; the call after
    the ``most`` allowed kills it."""
    sys.path.insert(0, str(plugin))
    os.environ["MGL_HOME"] = str(home)
    calls = 0

    def hear() -> None:
        nonlocal calls
        if calls == most:
            os.kill(os.getpid(), signal.SIGKILL)
        calls += 1
        with (home / "calls").open("a") as log:
            log.write("call\n")

    trial = Trial(home, data, heard=hear)
    if (out / "manifest.json").exists():
        trial.resume(out)
    else:
        trial.run(out, **OPTIONS)


def run(*given: Path, most: int = 1000) -> tuple[int | None, int]:
    """Run to the end or up to so many calls in a process of its own; the exit code, and how many
    calls were made."""
    _, home, *_ = given
    (home / "calls").write_text("")
    process = FORKING.Process(target=work, args=(*given, most))
    process.start()
    process.join()
    return process.exitcode, (home / "calls").read_text().count("call\n")


def test_killed_twice_a_run_gives_the_same_bytes_and_pays_no_call_twice(
    plugin: Path, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "tiny.json")
    home, other, out = (tmp_path / name for name in ("home", "other", "second"))
    home.mkdir()
    other.mkdir()
    whole = Trial(other, data)
    whole.run(tmp_path / "first", **OPTIONS)
    assert (calls := whole.calls) > 40

    given = plugin, home, data, out
    assert run(*given, most=12) == (-signal.SIGKILL, 12)
    assert 0 < len(rows(out)) < 27
    with (out / "records.jsonl").open("a") as file:
        file.write('{"kind": "answer", "it')
    assert run(*given, most=15) == (-signal.SIGKILL, 15)
    code, last = run(*given)
    assert code == 0
    assert last < calls - 20
    assert result(out) == result(tmp_path / "first")
    assert not (out / "work").exists()


@pytest.mark.usefixtures("plugin")
def test_a_run_resumes_from_any_line(trial: Trial, tmp_path: Path) -> None:
    """What was killed between its last record and its end, or long before, ends the same."""
    out = trial.run(tmp_path / "run")
    before, calls = result(out), trial.calls
    lines = (out / "records.jsonl").read_bytes().splitlines(keepends=True)
    for kept in (0, 1, 6, 21):
        (out / "records.jsonl").write_bytes(b"".join(lines[:kept]) + b'{"kin')
        Manifest.read(out).model_copy(update={"ended": None}).write(out)
        assert trial.resume(out).ended is not None
        assert result(out) == before
    assert trial.calls == calls
