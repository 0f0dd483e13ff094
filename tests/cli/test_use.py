"""``mgl use``: the model of all commands, typed against servers that answer as the real ones do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mgl.lab.default import DefaultModel, read_default
from mgl.models.adapters import write_adapter
from mgl.serving import nearby
from tests.cli.conftest import SERVED, Mgl
from tests.cli.server import Server
from tests.evaluation.trial import write_data
from tests.leftovers import find_left
from tests.openai.answering import LLAMA as TOKENIZING
from tests.openai.answering import Route, chat, serving
from tests.serving.makes import obeying
from tests.serving.test_nearby import LLAMA, LM_STUDIO, OLLAMA

CLAIMS = '{"answer": "Bo met.", "confidence": "high", "citations": []}'


def answer(body: Any) -> Any:
    """Answer a probe as Ollama does, and a question about the book."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    is_probe = "word" in schema.get("properties", {})
    return chat(obeying(schema) if is_probe else CLAIMS)


@pytest.fixture(autouse=True)
def _engines_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """The doctor would import the real ones in a process of its own, for seconds."""
    monkeypatch.setattr("mgl.lab.doctor._import_error", lambda _modules: "")


@pytest.fixture
def ollama() -> Iterator[str]:
    routes: dict[str, Route] = {**OLLAMA, "/v1/chat/completions": answer}
    with serving(routes) as server:
        yield f"{server.url}/v1"


def test_the_default_ships_until_another_is_used(mgl: Mgl, mgl_home: Path) -> None:
    assert "qwen2.5-coder-1.5b, which ships as default" in mgl("use").stdout
    used = mgl("use", "smollm2-135m")
    assert used.stdout == "smollm2-135m\n"
    assert "`mgl models get smollm2-135m`" in used.stderr
    assert mgl("use").stdout == "smollm2-135m\n"
    shown = json.loads(mgl("use", "--json").stdout)
    assert shown == {"model": "smollm2-135m", "base_url": None, "adapter": None, "is_set": True}
    assert read_default(mgl_home) == DefaultModel(model="smollm2-135m")
    assert "which ships" in mgl("use", "--unset").stdout
    assert read_default(mgl_home) is None
    mgl("use", "--unset", code=0)


def test_every_command_asks_the_server_that_is_used(
    mgl: Mgl, server: Server, book: Path, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the key of the environment, which is not kept."""
    monkeypatch.setenv("MGL_API_KEY", "the-servers")
    assert mgl("use", server.url).stdout == f"{SERVED} of {server.url}\n"
    question = ("ask", book, "How many met?", "--set", "chunk_tokens=24", "--json")
    done = mgl(*question, code=0)
    assert json.loads(done.stdout)["answer"] == "20 met."
    assert "server" in {line.split()[1].strip(":") for line in mgl("doctor").stdout.splitlines()}
    assert server.keys == {"Bearer the-servers"}
    assert find_left(mgl_home, ["the-servers"]) == {}


def test_options_and_environment_go_before_the_default(
    mgl: Mgl, server: Server, ollama: str, book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mgl("use", ollama, code=0)
    question = ("ask", book, "How many met?", "--set", "chunk_tokens=24", "--json")
    for named in (("--base-url", server.url), ("--model", SERVED, "--base-url", server.url)):
        assert json.loads(mgl(*question, *named).stdout)["answer"] == "20 met."
    refused = mgl("ask", book, "Another?", "--model", SERVED)
    assert f"{SERVED} needs a model server" in refused.stderr
    monkeypatch.setenv("MGL_BASE_URL", server.url)
    assert json.loads(mgl(*question).stdout)["answer"] == "20 met."
    assert f"MGL_BASE_URL overrides it: {server.url}" in mgl("use").stderr


@pytest.mark.parametrize(
    ("options", "model"),
    [((), "mistral:latest"), (("--model", "llama3.2:latest"), "llama3.2:latest")],
)
def test_a_model_of_ollama_is_used(
    mgl: Mgl, ollama: str, book: Path, options: tuple[str, ...], model: str
) -> None:
    assert mgl("use", ollama, *options).stdout == f"{model} of {ollama}\n"
    done = mgl("ask", book, "Who met?", "--memory", "direct")
    assert "Bo met." in done.stdout, done.stderr
    assert f"using {model} of the server" in done.stderr


def test_a_llama_cpp_server_is_used_by_the_name_of_its_file(mgl: Mgl, book: Path) -> None:
    with serving({**TOKENIZING, **LLAMA, "/v1/chat/completions": answer}) as server:
        assert mgl("use", server.url).stdout == f"best.gguf of {server.url}\n"
        assert "Bo met." in mgl("ask", book, "Who met?", "--memory", "direct").stdout
        assert {body["model"] for body in server.bodies()} == {"/models/best.gguf"}


@pytest.mark.usefixtures("plugin")
def test_a_run_takes_the_default_unless_it_names_another_model(
    mgl: Mgl, ollama: str, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "tiny.json", {"north": ["Asgard"]})
    words = ("eval", "run", "tiny", "--memory", "direct", "--data", data)
    mgl("use", ollama, code=0)
    mgl(*words, "--out", tmp_path / "first", code=0)
    kept = json.loads((tmp_path / "first" / "manifest.json").read_text())
    assert list(kept["models"]) == ["mistral:latest"]
    named = mgl(*words, "--out", tmp_path / "second", "--model", SERVED)
    assert f"{SERVED} needs a model server" in named.stderr
    mgl("eval", "resume", tmp_path / "first", "--data", data, code=0)


def test_what_cannot_be_used_is_refused_and_changes_nothing(
    mgl: Mgl, ollama: str, mgl_home: Path
) -> None:
    write_adapter("mine", mgl_home, {"kind": "retriever", "licence": "MIT"}, [])
    mgl("use", "smollm2-135m", code=0)
    for arguments, code, said in (
        (("smollm2-135",), 2, "did you mean smollm2-135m"),
        (("all-minilm-l6-v2",), 2, "does not generate text"),
        (("mine",), 2, "kind retriever"),
        (("smollm2-135m", "--unset"), 2, "--unset takes no model"),
        (("smollm2-135m", "--model", "x"), 2, "mgl use URL --model NAME"),
        ((ollama, "--model", "gemma3"), 4, "does not serve gemma3"),
        (("http://127.0.0.1:9/v1",), 4, "no server answers"),
    ):
        refused = mgl("use", *arguments)
        assert (refused.exit_code, said in refused.stderr) == (code, True), refused.stderr
    assert mgl("use").stdout == "smollm2-135m\n"


def test_an_adapter_is_used_with_its_base(mgl: Mgl, mgl_home: Path) -> None:
    manifest = {"kind": "builder", "base": "smollm2-135m", "licence": "MIT"}
    write_adapter("edits", mgl_home, manifest, [])
    assert mgl("use", "edits").stdout == "the adapter edits\n"
    checks = {line.split(": ")[0][4:] for line in mgl("doctor").stdout.splitlines()}
    assert {"default", "weights smollm2-135m"} <= checks


def test_a_broken_file_is_named_and_unset(mgl: Mgl, mgl_home: Path, book: Path) -> None:
    (mgl_home / "default.json").write_text('{"modle": "x"}')
    for words in (("use",), ("ask", book, "Who?")):
        refused = mgl(*words, code=5)
        assert "`mgl use --unset` removes it" in refused.stderr
    assert "!!  default: " in mgl("doctor").stdout
    mgl("use", "--unset", code=0)


def test_the_doctor_names_the_best_model_and_its_one_command(
    mgl: Mgl, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(OLLAMA) as first, serving(LM_STUDIO) as second, serving(LLAMA) as third:
        ports = tuple(int(each.url.rsplit(":", 1)[1]) for each in (first, second, third))
        monkeypatch.setattr(nearby, "PORTS", ports)
        command = f"`mgl use http://127.0.0.1:{ports[2]}/v1 --model /models/best.gguf`"
        (line,) = [one for one in mgl("doctor").stdout.splitlines() if "better model" in one]
        assert line.startswith("ok  better model: /models/best.gguf of llama.cpp b6000-1234567")
        assert command in line
        assert command in mgl("use").stderr
        mgl(*command.strip("`").split()[1:], code=0)
        assert "better model" not in mgl("doctor").stdout
