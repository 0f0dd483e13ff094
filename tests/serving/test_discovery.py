"""Commands that were told of no server, and find the one that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mgl.cli.app import app
from mgl.errors import EngineUnavailable
from mgl.lab import doctor
from mgl.serving import records
from mgl.serving.records import ServerRecord, find_server, server_at
from tests.cli.server import Server, story
from tests.openai.answering import Answered, chat, models
from tests.openai.answering import serving as serving_routes
from tests.serving.test_records import record_of

MODEL = "qwen2.5-7b-instruct"


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


@pytest.mark.parametrize("named", [True, False])
def test_a_wrong_key_is_said_once_and_not_tried_again(
    mgl_home: Path, book: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setenv("MGL_API_KEY", "wrong")
    with serving_routes({"/v1/models": Answered(401, {"error": "Unauthorized"})}) as refusing:
        url = f"{refusing.url}/v1"
        options = ("--model", MODEL, "--base-url", url) if named else ()
        with run_by_mgl(mgl_home, record_at(url)):
            result = ask(book, *options)
        assert result.exit_code == 4
        assert "MGL_API_KEY" in result.stderr
        asked = [path for path, _, _ in refusing.seen]
        assert asked == ["/v1/models"] * 2, "for its context, and for the call"


def test_doctor_finds_the_server_with_its_key(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_import_error", lambda _modules: "")
    with serving_routes({"/v1/models": models(MODEL)}) as server:
        url = f"{server.url}/v1"
        with run_by_mgl(mgl_home, record_at(url)):
            found = {check.name: check for check in doctor.examine()}
        assert server.seen[-1][1]["Authorization"].lower() == "bearer sesame"
        assert found["profile"].detail.startswith(MODEL)
        assert found["server"].ok
        with run_by_mgl(mgl_home, record_at(url, state="restarting", progress="in 4 s")):
            found = {check.name: check for check in doctor.examine()}
        assert not found["servers"].ok
    assert "servers" in {check.name for check in doctor.examine()}, "what is left is said once"
    assert "servers" not in {check.name for check in doctor.examine()}


def test_an_adapter_that_the_server_has_not_is_refused(book: Path) -> None:
    listed = models(MODEL)
    listed["data"] += [{"id": "tales", "parent": MODEL}, {"id": "others", "parent": "another"}]
    with serving_routes({"/v1/models": listed, "/v1/chat/completions": chat("Hm.")}) as server:
        for adapter in ("others", "nothing", MODEL):
            options = ("--base-url", f"{server.url}/v1", "--adapter", adapter)
            assert ask(book, "--model", MODEL, *options).exit_code == 4
