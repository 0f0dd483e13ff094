"""``mgl mcp``: what a client is to paste."""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mgl.cli.options import choose_model
from mgl.lab.model import ModelChoice
from tests.cli.conftest import Mgl


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MGL_API_KEY", "MGL_UP_KEY", "MGL_ENGINE_IDLE", "HF_HOME", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


def configure(mgl: Mgl, *words: object) -> dict[str, Any]:
    done = mgl("mcp", "--config", *words, code=0)
    own: dict[str, Any] = json.loads(done.stdout)["mcpServers"]["mgl"]
    return own


def test_what_is_to_be_pasted_starts_it(mgl: Mgl, mgl_home: Path) -> None:
    own = configure(mgl, "stdio", "--model", "smollm2-135m")
    assert own["command"] == sys.executable
    assert own["args"] == ["-m", "mgl", "mcp", "--model", "smollm2-135m"]
    assert own["env"] == {"MGL_HOME": str(mgl_home)}
    http = configure(mgl, "http")
    assert http["url"] == "http://127.0.0.1:8788/mcp"
    key = json.loads((mgl_home / "keys.json").read_text())[""]
    assert http["headers"] == {"Authorization": f"Bearer {key}"}


GIVEN: dict[str, list[str]] = {
    "model": ["--model", "m"],
    "engine": ["--engine", "openai"],
    "base_url": ["--base-url", "http://127.0.0.1:8000/v1"],
    "weights": ["--weights", "weights.gguf"],
    "adapter": ["--adapter", "tales"],
    "models": ["--models", "profiles"],
    "embedder": ["--embedder", "e:128"],
    "reranker": ["--reranker", "r"],
    "allow_hub": ["--allow-hub"],
}


class Opened(Exception): ...


def test_a_client_opens_the_model_that_was_chosen_from_any_folder(
    mgl: Mgl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every option that a model is chosen by, with what the shell said of it."""
    assert GIVEN.keys() == inspect.signature(choose_model).parameters.keys()
    chosen: list[ModelChoice] = []

    def open_lab(choice: ModelChoice, **_: Any) -> None:
        chosen.append(choice)
        raise Opened

    monkeypatch.setattr("mgl.lab.Lab.open", open_lab)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MGL_API_KEY", "the-model-servers-key")
    words = [word for each in GIVEN.values() for word in each]
    own = configure(mgl, "stdio", *words)
    monkeypatch.delenv("MGL_API_KEY")
    monkeypatch.chdir("/")
    for name, value in own["env"].items():
        monkeypatch.setenv(name, value)
    assert own["args"][:3] == ["-m", "mgl", "mcp"]
    assert isinstance(mgl(*own["args"][2:]).exception, Opened)
    assert chosen == [
        ModelChoice(
            profile="m",
            engine="openai",
            base_url="http://127.0.0.1:8000/v1",
            api_key="the-model-servers-key",
            weights=tmp_path / "weights.gguf",
            models=tmp_path / "profiles",
            allow_hub=True,
            adapter="tales",
            embedder="e:128",
            reranker="r",
        )
    ]


def test_what_the_shell_chose_is_kept(mgl: Mgl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGL_BASE_URL", "http://127.0.0.1:8000/v1")
    monkeypatch.setenv("HF_HOME", "/hub")
    own = configure(mgl, "stdio")
    assert own["args"][3:] == ["--base-url", "http://127.0.0.1:8000/v1"]
    assert own["env"]["HF_HOME"] == "/hub"


def test_the_address_of_a_server_comes_with_the_key_of_its_door(
    mgl: Mgl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGL_UP_KEY", "mine")
    monkeypatch.setenv("MGL_API_KEY", "the-model-servers-key")
    own = configure(mgl, "http", "--port", 9999)
    assert own["url"] == "http://127.0.0.1:9999/mcp"
    assert own["headers"] == {"Authorization": "Bearer mine"}
    assert "the-model-servers-key" not in json.dumps(own)
    told = mgl("mcp", "--config", "http", "--model", "m")
    assert "are for `mgl up`" in told.stderr
