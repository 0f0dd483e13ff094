"""``mgl up`` as a shell runs it: detached, asked by its key, stopped."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import httpx
import psutil
import pytest

from mgl.errors import EngineUnavailable, ResourceError, install_hint
from tests.cli.conftest import SERVED, Mgl
from tests.cli.server import Server
from tests.cli.shell import free_port
from tests.leftovers import find_left
from tests.patience import PATIENCE_S, wait_until
from tests.serving.supervised import hear_signals

OWN = "a-key-of-my-own"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MGL_API_KEY", "MGL_UP_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def port() -> Iterator[int]:
    with free_port("up") as number:
        yield number


def ask(port: int, key: str, host: str = "127.0.0.1") -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.get(f"http://{host}:{port}/v1/models", headers=headers, trust_env=False)


def processes() -> set[int]:
    """The processes that any server of a test carries on in."""
    found = set()
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except psutil.Error:
            continue
        if "MGL_SERVER" in environment and environment.get("MGL_HOME") == os.environ["MGL_HOME"]:
            found.add(process.pid)
    return found


def test_detached_with_a_key_for_each_tenant_and_once_a_port(
    mgl_leaving: Mgl, options: tuple[str, ...], port: int, mgl_home: Path
) -> None:
    mgl = mgl_leaving
    stop = ("up", "--stop", "--port", port)
    command = ("up", "--port", port, *options, "--tenant", "ann", "--detach")
    ready, look, ann = mgl(*command, code=0).stdout.splitlines()
    assert ready.startswith(f"ready at http://127.0.0.1:{port}/v1 with the key mgl-")
    assert look.endswith(f": http://127.0.0.1:{port}/inspect/")
    assert ann.startswith("ann: mgl-")
    keys = ready.split()[-1], ann.split()[-1]
    for key in keys:
        names = [each["id"] for each in ask(port, key).json()["data"]]
        assert names == ["mgl/gam", "mgl/mnemis", SERVED]
    pasted = json.loads(mgl("mcp", "--config", "http").stdout)["mcpServers"]["mgl"]
    assert pasted["url"] == f"http://127.0.0.1:{port}/mcp"
    elsewhere = mgl("up", "--stop", "--port", 9).stdout
    assert f", but at http://127.0.0.1:{port}\n" in elsewhere
    second = mgl(*command, code=2)
    assert second.stdout == ""
    assert f"port {port} is taken" in second.stderr
    assert "--stop" in second.stderr
    assert ask(port, keys[0]).status_code == 200
    assert f"stopped the server on port {port}" in mgl(*stop).stdout
    with pytest.raises(httpx.ConnectError):
        ask(port, keys[0])
    assert "no server was detached" in mgl(*stop).stdout
    assert (mgl_home / "tenants" / "ann" / "mgl.sqlite").exists()
    log = mgl_home / "up" / f"{port}.log"
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "ready at" in log.read_text()
    assert not [key for key in keys if key in log.read_text()]


def test_on_another_host_the_key_of_the_door_and_that_of_the_model_server_are_two(
    mgl_leaving: Mgl,
    server: Server,
    options: tuple[str, ...],
    port: int,
    mgl_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MGL_UP_KEY", OWN)
    monkeypatch.setenv("MGL_API_KEY", "the-model-servers-key")
    host = "127.0.0.2"
    command = ("up", "--host", host, "--port", port, *options, "--detach")
    said = mgl_leaving(*command, code=0).stdout
    assert f"ready at http://{host}:{port}/v1 with the key of MGL_UP_KEY" in said
    assert ask(port, OWN, host).status_code == 200
    assert ask(port, "the-model-servers-key", host).status_code == 401
    plain = {"model": SERVED, "messages": [{"role": "user", "content": "How many met?"}]}
    headers = {"Authorization": f"Bearer {OWN}"}
    url = f"http://{host}:{port}/v1/chat/completions"
    answer = httpx.post(url, json=plain, headers=headers, trust_env=False, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    assert server.keys == {"Bearer the-model-servers-key"}
    assert "stopped" in mgl_leaving("up", "--stop", "--port", port).stdout
    assert (mgl_home / "up" / f"{port}.log").exists()
    assert find_left(mgl_home, [OWN]) == {}
    assert OWN not in said


def test_detached_without_the_extra_says_what_to_install(
    mgl_leaving: Mgl, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = tmp_path / "uvicorn.py"
    missing.write_text("raise ModuleNotFoundError('none', name='uvicorn')")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    done = mgl_leaving("up", "--port", port, "--detach", code=ResourceError.exit_code)
    error, hint = done.stderr.splitlines()
    assert error == "error: the server needs uvicorn"
    assert hint == f"hint: {install_hint('server')}"
    assert not processes()


class Stranger(BaseHTTPRequestHandler):
    """Says of itself what any server says."""

    def do_GET(self) -> None:
        body = b'{"status": "ok", "model": "another", "proof": "0"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_strangers_server_is_not_taken_for_the_one_just_started(
    mgl_leaving: Mgl, options: tuple[str, ...], mgl_home: Path
) -> None:
    with HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        thread = Thread(target=stranger.serve_forever, daemon=True)
        thread.start()
        port = stranger.server_address[1]
        done = mgl_leaving("up", "--port", port, *options, "--detach", code=2)
        assert done.stdout == ""
        assert f"port {port} cannot be used" in done.stderr
        assert not (mgl_home / "up" / f"{port}.json").exists()
        assert "was detached on port" in mgl_leaving("up", "--stop", "--port", port).stdout
        assert httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200
        stranger.shutdown()
        thread.join()


@pytest.mark.usefixtures("mgl_home")
def test_ctrl_c_before_it_is_ready_leaves_nothing_running(port: int) -> None:
    with socket.socket() as silent:  # a model server that answers nobody
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        words = ("up", "--port", f"{port}", "--model", SERVED, "--base-url", url, "--detach")
        process = subprocess.Popen(
            [sys.executable, "-m", "mgl", *words], preexec_fn=hear_signals, start_new_session=True
        )
        wait_until(lambda: bool(processes()))
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_S)
        assert not processes()


def test_one_that_cannot_be_stopped_or_has_died_is_not_said_to_be_stopped(
    mgl_leaving: Mgl,
    options: tuple[str, ...],
    port: int,
    mgl_home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mgl = mgl_leaving
    mgl("up", "--port", port, *options, "--detach", code=0)
    with monkeypatch.context() as patch:  # as another user's, whose processes one cannot see
        patch.setattr("mgl.processes.find_processes", lambda _token: [])
        done = mgl("up", "--stop", "--port", port)
    assert done.exit_code == EngineUnavailable.exit_code
    assert "still answers" in done.stderr
    for number in processes():
        os.kill(number, signal.SIGKILL)
    wait_until(lambda: not processes())
    said = mgl("up", "--stop", "--port", port).stdout
    assert "had ended already" in said
    assert "stopped" not in said
    assert not (mgl_home / "up" / f"{port}.json").exists()


def test_a_record_that_is_none_is_named(mgl: Mgl, port: int, mgl_home: Path) -> None:
    path = mgl_home / "up" / f"{port}.json"
    path.parent.mkdir()
    path.write_text("[]")
    done = mgl("up", "--stop", "--port", port)
    assert done.exit_code == ResourceError.exit_code
    assert str(path) in done.stderr
    path.unlink()


def test_another_host_needs_a_key_of_its_own(mgl: Mgl, monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the model server opens no door to the network."""
    monkeypatch.setenv("MGL_API_KEY", "the-model-servers-key")
    done = mgl("up", "--host", "0.0.0.0", code=2)
    assert "no key was given" in done.stderr
    assert "MGL_UP_KEY" in done.stderr
