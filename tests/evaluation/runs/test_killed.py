"""Runs whose process is killed, and that are started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mgl.evaluation.runs.manifest import Manifest
from tests.evaluation.trial import KILLED, Trial, result, rows, write_data


def run(plugin: Path, home: Path, data: Path, out: Path, most: int = 1000) -> tuple[int, int]:
    """Run to the end or up to so many calls; the exit code, and how many calls were made."""
    search = os.pathsep.join([str(plugin), str(Path.cwd()), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.evaluation.trial", str(home), str(data), str(out), str(most)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": search, "MGL_HOME": str(home)},
        check=False,
    )
    return done.returncode, done.stdout.count("call\n")


def test_killed_twice_a_run_gives_the_same_bytes_and_pays_no_call_twice(
    plugin: Path, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "tiny.json")
    (tmp_path / "whole").mkdir()
    whole = Trial(tmp_path / "whole", data)
    whole.run(tmp_path / "first", **KILLED)
    assert (calls := whole.calls) > 40

    home, out = tmp_path / "home", tmp_path / "second"
    assert run(plugin, home, data, out, 12) == (-signal.SIGKILL, 12)
    assert 0 < len(rows(out)) < 27
    with (out / "records.jsonl").open("a") as file:
        file.write('{"kind": "answer", "it')
    assert run(plugin, home, data, out, 15) == (-signal.SIGKILL, 15)
    code, last = run(plugin, home, data, out)
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
