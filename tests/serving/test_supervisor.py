"""Real processes and real signals; the server alone is not the real one."""

from __future__ import annotations

import signal
import stat
import urllib.error
import urllib.request
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pytest

from mgl import processes
from mgl.errors import UsageError
from mgl.serving import records
from mgl.serving.records import ServerRecord, find_leftovers
from mgl.serving.supervisor import Rhythm, Supervisor, is_ready, request_stop
from tests.patience import PATIENCE_S, wait_until
from tests.serving.conftest import plan_of
from tests.serving.supervised import Supervised


def crash(record: ServerRecord) -> None:
    """Let the server crash in the middle of an answer."""
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        urllib.request.urlopen(f"http://127.0.0.1:{record.port}/crash", timeout=PATIENCE_S)


def test_it_starts_tells_how_far_it_is_and_stops_without_a_trace(
    mgl_home: Path, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MGL_UP_KEY", "MGL_API_KEY"):
        monkeypatch.setenv(name, "sesame")
    loaded = tmp_path / "loaded"
    with Supervised(mgl_home, plan_of(port, "--load-until", loaded, "--child")) as supervised:
        loading = supervised.until(lambda one: one.progress == "loading weights 50%")
        assert loading.state == "starting"
        loaded.touch()
        record = supervised.ready()
        assert is_ready(record)
        assert record.progress == ""
        assert stat.S_IMODE(record.log.stat().st_mode) == 0o600
        assert "Application startup complete" in record.log.read_text()
        check_keys(record)
        with pytest.raises(UsageError):  # a second server on the port
            Supervisor(plan_of(port, model="other"), mgl_home).run()
        assert records.list_running(mgl_home) == [record]
        supervised.process.send_signal(signal.SIGTERM)
        assert supervised.end()[0] == "stopped"
    assert processes.find_processes(record.token) == [], "its child does not heed SIGTERM"
    assert records.list_running(mgl_home) == records.find_leftovers(mgl_home) == []


def check_keys(record: ServerRecord) -> None:
    """Its own key is needed and shown nowhere, and it was told no other."""
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{record.base_url}/models")
    assert record.api_key not in record.log.read_text()
    found = processes.find_processes(record.token)
    assert len(found) == 2
    for process in found:
        assert not any(record.api_key in word for word in process.cmdline())
        assert "sesame" not in process.environ().values()


def test_crashes_are_started_again_with_their_error_kept_until_there_are_too_many(
    mgl_home: Path, port: int
) -> None:
    with Supervised(mgl_home, plan_of(port), restarts=2) as supervised:
        record = supervised.ready()
        crash(record)
        again = supervised.ready(restarts=1)
        assert again.last_error == "the server ended with exit code 1"
        assert (again.api_key, again.token) == (record.api_key, record.token)
        (server,) = processes.find_processes(record.token)
        server.kill()
        killed = supervised.ready(restarts=2)
        assert "signal 9" in str(killed.last_error)
        crash(killed)
        state, error, hint, restarts = supervised.end()
    assert (state, restarts) == ("failed", 2)
    assert "restarted 2 times without success" in error
    assert "log" in hint
    (left,) = find_leftovers(mgl_home)
    assert error in left.describe()
    assert find_leftovers(mgl_home) == []


@pytest.mark.parametrize(
    ("said", "restarts", "hinted"),
    [
        ("RuntimeError: the moon is full", 1, ""),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", 0, "nvidia-smi"),
    ],
)
def test_a_server_that_never_starts_is_tried_twice_unless_that_cannot_mend_it(
    mgl_home: Path, port: int, tmp_path: Path, said: str, restarts: int, hinted: str
) -> None:
    words = tmp_path / "words"
    words.write_text(said)
    final = Supervisor(
        plan_of(port, "--crash", words, "--times", 9),
        mgl_home,
        rhythm=Rhythm(first_delay_s=0.1, last_delay_s=0.1),
    ).run()
    assert (final.state, final.restarts) == ("failed", restarts)
    assert said.partition(": ")[2].rpartition(". ")[2] in str(final.last_error)
    assert hinted in str(final.hint)


def test_a_python_that_is_not_there(mgl_home: Path, port: int) -> None:
    missing = replace(plan_of(port), command=("/no/such/python", "-m", "vllm"))
    final = Supervisor(missing, mgl_home).run()
    assert final.state == "failed"
    told = "/no/such/python cannot be started: No such file or directory"
    assert told in str(final.last_error)
    assert "--python" in str(final.hint)


class Open(BaseHTTPRequestHandler):
    """Another server of the same model, which asks nobody for a key."""

    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers["Authorization"])
        body = b'{"data": [{"id": "tiny"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_another_server_on_the_port_is_not_the_one_that_starts(
    mgl_home: Path, port: int, tmp_path: Path
) -> None:
    """It came after the port was checked, and before ours listens."""
    loaded = tmp_path / "loaded"
    with Supervised(mgl_home, plan_of(port, "--load-until", loaded)) as supervised:
        starting = supervised.until(lambda one: one.progress == "loading weights 50%")
        with HTTPServer(("127.0.0.1", port), Open) as other:
            thread = Thread(target=other.serve_forever, daemon=True)
            thread.start()
            looked = [is_ready(starting) for _ in range(3)]
            loaded.touch()
            failed = supervised.until(lambda one: one.state != "starting")
            other.shutdown()
            thread.join()
        assert looked == [False] * 3
        assert failed.state in ("restarting", "failed")
        assert Open.asked == [], "the key was sent to another"


def test_it_can_be_stopped_while_it_starts_or_waits(mgl_home: Path, port: int) -> None:
    with Supervised(mgl_home, plan_of(port, "--load-until", "/never")) as supervised:
        first = supervised.until(lambda one: one.progress != "")
        request_stop(mgl_home, first)
        assert supervised.end()[0] == "stopped"
    with Supervised(mgl_home, plan_of(port), first_delay_s=30, last_delay_s=30) as supervised:
        crash(supervised.ready())
        record = supervised.until(lambda one: one.state == "restarting")
        wait_until(lambda: not processes.find_processes(record.token))
        request_stop(mgl_home, record)
        assert supervised.end()[0] == "stopped"
    made = (first.api_key, first.token, record.api_key, record.token)
    assert len({*made}) == 4
    assert min(map(len, made)) >= 32
