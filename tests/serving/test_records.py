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
from mgl.serving import records
from mgl.serving.records import Leftover, ServerRecord

HOLDING = """
import sys, time
from pathlib import Path
from mgl.serving import records
with records.lock_port(Path(sys.argv[1]), int(sys.argv[2])) as held:
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
    with records.lock_port(mgl_home, 8001) as held:
        assert held
        records.write_record(mgl_home, record_of(8001))
        records.write_record(mgl_home, record)
        assert records.list_running(mgl_home) == [record]
        assert records.find_leftovers(mgl_home) == []
    (path,) = (mgl_home / "servers" / "run").glob("*.json")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert records.list_running(mgl_home) == []
    assert records.find_leftovers(mgl_home) == [Leftover(record, 0)]
    assert not path.exists(), "nothing is left of it"


def test_one_lock_a_port_and_it_goes_with_its_process(mgl_home: Path) -> None:
    held = [sys.executable, "-c", HOLDING, str(mgl_home), "8001"]
    with subprocess.Popen(held, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        records.write_record(mgl_home, record_of(8001))
        with (
            records.lock_port(mgl_home, 8001) as second,
            records.lock_port(mgl_home, 8002) as other,
        ):
            assert (second, other) == (False, True)
        assert len(records.list_running(mgl_home)) == 1
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert records.list_running(mgl_home) == []
    with records.lock_port(mgl_home, 8001) as again:
        assert again


def test_a_file_that_makes_no_sense(mgl_home: Path) -> None:
    path = mgl_home / "servers" / "run" / "8001.json"
    with records.lock_port(mgl_home, 8001):
        path.write_text('{"model": "tiny"}')
        with pytest.raises(ResourceError) as caught:
            records.list_running(mgl_home)
        assert str(path) in caught.value.hint
    assert records.find_leftovers(mgl_home) == []
    assert not path.exists()
