"""Commands that were told of no server, and find the one that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mgl.cli.app import app
from mgl.errors import EngineUnavailable
from mgl.lab import doctor
from mgl.serving import records
from mgl.serving.records import ServerRecord, find_server, server_at
from tests.cli.server import Server, serving, story
from tests.serving.test_records import record_of

MODEL = "qwen2.5-7b-instruct"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.txt"
    path.write_text(story(6))
    return path


@contextmanager
def run_by_mgl(home: Path, *servers: ServerRecord) -> Iterator[None]:
    """As if supervisors looked after these servers."""
    with ExitStack() as held:
        for record in servers:
            assert held.enter_context(records.lock_port(home, record.port))
            records.write_record(home, record)
        yield


def record_at(url: str, **changes: object) -> ServerRecord:
    return record_of(1, **{"base_url": url, "model": MODEL, "state": "ready", **changes})


def ask(book: Path, *options: str) -> Result:
    arguments = ["ask", str(book), "How many met?", "--set", "chunk_tokens=24", *options]
    return CliRunner().invoke(app, arguments)


def test_the_only_server_is_used_and_said(mgl_home: Path, server: Server, book: Path) -> None:
    with run_by_mgl(mgl_home, record_at(server.url)):
        result = ask(book, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["answer"] == "6 met."
    assert f"using your server {MODEL} at {server.url}" in result.stderr
    assert server.done


def test_what_is_named_goes_first(mgl_home: Path, server: Server, book: Path) -> None:
    gone = record_at("http://127.0.0.1:9/v1")
    with run_by_mgl(mgl_home, gone):
        named = ask(book, "--model", MODEL, "--base-url", server.url)
        assert named.exit_code == 0, named.stderr
        assert "using your server" not in named.stderr
        other = ask(book, "--engine", "openvino", "--weights", str(book))
        assert "using your server" not in other.stderr
        assert other.exit_code != 0


def test_the_server_of_a_model_is_used_for_that_model_only(
    mgl_home: Path, server: Server, book: Path
) -> None:
    other = record_of(8001, model="tiny", state="ready")
    embedder = record_of(8002, model="bge-m3", task="embed", state="ready")
    with run_by_mgl(mgl_home, other, record_at(server.url), embedder):
        found = find_server(mgl_home, MODEL)
        assert found is not None
        assert found.base_url == server.url
        assert find_server(mgl_home, "smollm2-135m") is None
        embedding = find_server(mgl_home, task="embed")
        assert embedding is not None
        assert embedding.model == "bge-m3"
        notes: list[str] = []
        assert find_server(mgl_home, note=notes.append) is None
        assert "choose one with --model" in notes[0]
        assert ask(book, "--model", MODEL).exit_code == 0


def test_a_server_that_starts_is_said_and_not_waited_for(mgl_home: Path, book: Path) -> None:
    starting = record_of(8001, model=MODEL, progress="loading weights 40%")
    with run_by_mgl(mgl_home, starting):
        for options in ((), ("--model", MODEL)):
            result = ask(book, *options)
            assert result.exit_code == 4
            assert f"{MODEL} on port 8001 (starting, loading weights 40%)" in result.stderr
            assert "mgl serve status" in result.stderr
        with pytest.raises(EngineUnavailable):
            find_server(mgl_home)
        assert find_server(mgl_home, "smollm2-135m") is None


def test_the_key_of_an_own_server_is_known_by_its_url(mgl_home: Path) -> None:
    record = record_of(8001, state="ready")
    with run_by_mgl(mgl_home, record):
        for url in ("http://127.0.0.1:8001/v1", "http://localhost:8001"):
            assert server_at(mgl_home, url) == record
        for url in ("http://127.0.0.1:8002/v1", "http://example.org:8001/v1", "http://["):
            assert server_at(mgl_home, url) is None


class _Refusing(BaseHTTPRequestHandler):
    """Knows one key, and counts what it is asked."""

    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append(self.path)
        known = self.headers["Authorization"] == "Bearer sesame"
        body = b'{"data": [{"id": "tiny"}]}' if known else b'{"error": "Unauthorized"}'
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[str]:
    _Refusing.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as listening:
        Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/v1"
        listening.shutdown()


@pytest.mark.parametrize("named", [True, False])
def test_a_wrong_key_is_said_once_and_not_tried_again(
    mgl_home: Path, refusing: str, book: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setenv("MGL_API_KEY", "wrong")
    options = ("--model", MODEL, "--base-url", refusing) if named else ()
    with run_by_mgl(mgl_home, record_at(refusing)):
        result = ask(book, *options)
    assert result.exit_code == 4
    assert "error: the server refuses the key (401)" in result.stderr
    assert "MGL_API_KEY" in result.stderr
    assert _Refusing.asked == ["/v1/models"] * 2, "for its context, and for the call"


def test_doctor_finds_the_server_with_its_key(
    mgl_home: Path, refusing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_import_error", lambda _modules: "")
    with run_by_mgl(mgl_home, record_at(refusing)):
        found = {check.name: check for check in doctor.examine()}
    assert found["profile"].detail.startswith(MODEL)
    assert found["server"].ok
    assert "serves tiny" in found["server"].detail
    assert "not needed" in found[f"weights {MODEL}"].detail
    with run_by_mgl(mgl_home, record_at(refusing, state="restarting", progress="in 4 s")):
        found = {check.name: check for check in doctor.examine()}
    assert not found["servers"].ok
    assert "restarting, in 4 s" in found["servers"].detail
    found = {check.name: check for check in doctor.examine()}
    assert "ended without a word" in found["servers"].detail
    assert "servers" not in {check.name for check in doctor.examine()}


class _Adapting(_Refusing):
    def do_GET(self) -> None:
        served: list[dict[str, Any]] = [
            {"id": MODEL, "parent": None},
            {"id": "tales", "parent": MODEL},
            {"id": "others", "parent": "another"},
        ]
        self._send({"data": served}, 200 if self.path == "/v1/models" else 404)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        said = {"message": {"content": "Hm."}, "finish_reason": "stop"}
        self._send({"choices": [said]}, 200)

    def _send(self, value: dict[str, Any], status: int) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_an_adapter_that_the_server_has_not_is_refused(book: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Adapting) as listening:
        Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        url = f"http://127.0.0.1:{listening.server_port}/v1"
        for adapter in ("others", "nothing", MODEL):
            result = ask(book, "--model", MODEL, "--base-url", url, "--adapter", adapter)
            assert result.exit_code == 4
            assert f"has no adapter {adapter} of {MODEL}; it has tales" in result.stderr
        listening.shutdown()
