from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mgl.errors import ResourceError
from mgl.serving import runfile
from mgl.serving.runfile import ServerRecord

HOLDING = """
import sys, time
from pathlib import Path
from mgl.serving import runfile
with runfile.hold(Path(sys.argv[1]), int(sys.argv[2])) as held:
    print(held, flush=True)
    time.sleep(60)
"""


def record_of(port: int, **changes: object) -> ServerRecord:
    made = ServerRecord(
        profile="cpu",
        model="tiny",
        task="generate",
        served_name="tiny",
        base_url=f"http://127.0.0.1:{port}/v1",
        api_key="sesame",
        token="0" * 32,
        supervisor_pid=os.getpid(),
        log=Path("/log"),
        adapters={"tales": Path("/adapters/tales")},
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_record_is_read_as_it_was_written_by_its_owner_only(mgl_home: Path) -> None:
    record = record_of(8001, state="restarting", last_error="crashed", restarts=2)
    with runfile.hold(mgl_home, 8001) as held:
        assert held
        runfile.write(mgl_home, record_of(8001))
        runfile.write(mgl_home, record)
        assert runfile.running(mgl_home) == [record]
        assert runfile.left_behind(mgl_home) == []
    (path,) = (mgl_home / "servers" / "run").glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert runfile.running(mgl_home) == []
    assert runfile.left_behind(mgl_home) == [record]
    runfile.forget(mgl_home, 8001)
    assert runfile.left_behind(mgl_home) == []


def test_one_lock_a_port_and_it_goes_with_its_process(mgl_home: Path) -> None:
    held = [sys.executable, "-c", HOLDING, str(mgl_home), "8001"]
    with subprocess.Popen(held, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        runfile.write(mgl_home, record_of(8001))
        with runfile.hold(mgl_home, 8001) as second, runfile.hold(mgl_home, 8002) as other:
            assert (second, other) == (False, True)
        assert len(runfile.running(mgl_home)) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert runfile.running(mgl_home) == []
    with runfile.hold(mgl_home, 8001) as again:
        assert again


def test_without_any_file_there_is_nothing(mgl_home: Path) -> None:
    assert runfile.running(mgl_home) == runfile.left_behind(mgl_home) == []
    assert runfile.read(mgl_home, 8001) is None


def test_a_file_that_makes_no_sense(mgl_home: Path) -> None:
    path = mgl_home / "servers" / "run" / "8001.json"
    with runfile.hold(mgl_home, 8001):
        path.write_text('{"model": "tiny"}')
        with pytest.raises(ResourceError, match=r"8001\.json cannot be read") as caught:
            runfile.running(mgl_home)
        assert str(path) in caught.value.hint
    assert runfile.left_behind(mgl_home) == []
    assert not path.exists()
