"""The home's default model where a choice names none, and what is proposed instead of ours."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mgl.errors import ResourceError
from mgl.lab import Lab, ModelChoice, suggestions
from mgl.lab.default import DefaultModel, write_default
from mgl.lab.suggestions import propose_profile, suggest_model
from mgl.models import fetch
from mgl.models.profiles import load_profiles
from mgl.serving import nearby
from tests.openai.answering import serving

URL = "http://127.0.0.1:9/v1"
SERVED = DefaultModel(model="llama3.1:8b", base_url=URL)
OWN = DefaultModel(model="smollm2-135m")
LORA = DefaultModel(adapter="edits")


@pytest.mark.parametrize(
    ("default", "choice", "used"),
    [
        (None, ModelChoice(), ModelChoice()),
        (OWN, ModelChoice(), ModelChoice("smollm2-135m")),
        (OWN, ModelChoice(engine="openvino"), ModelChoice("smollm2-135m", engine="openvino")),
        (OWN, ModelChoice("qwen3-4b-q4"), ModelChoice("qwen3-4b-q4")),
        (OWN, ModelChoice(base_url=URL), ModelChoice(base_url=URL)),
        (OWN, ModelChoice(adapter="edits"), ModelChoice(adapter="edits")),
        (LORA, ModelChoice(), ModelChoice(adapter="edits")),
        (LORA, ModelChoice("smollm2-135m"), ModelChoice("smollm2-135m")),
        (SERVED, ModelChoice(), ModelChoice("llama3.1:8b", base_url=URL)),
        (SERVED, ModelChoice("llama3.1:8b"), ModelChoice("llama3.1:8b", base_url=URL)),
        (SERVED, ModelChoice("smollm2-135m"), ModelChoice("smollm2-135m")),
        (SERVED, ModelChoice(engine="openvino"), ModelChoice(engine="openvino")),
        (SERVED, ModelChoice(weights=Path("x")), ModelChoice(weights=Path("x"))),
    ],
)
def test_what_is_named_goes_before_the_default(
    default: DefaultModel | None, choice: ModelChoice, used: ModelChoice, tmp_path: Path
) -> None:
    if default is not None:
        write_default(tmp_path, default)
    assert choice.with_default(tmp_path) == used


@pytest.mark.parametrize(
    ("free_gb", "cores", "proposed"),
    [
        (64, 8, "qwen2.5-7b-q4"),
        (64, 4, "qwen3-4b-q4"),
        (9, 16, "qwen3-4b-q4"),
        (5, 16, None),
        (64, 2, None),
    ],
)
def test_memory_and_cores_decide_which_profile_is_proposed(
    free_gb: int, cores: int, proposed: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_machine(monkeypatch, free_gb, cores)
    found = propose_profile(load_profiles())
    assert (found and found.name) == proposed


def give_machine(monkeypatch: pytest.MonkeyPatch, free_gb: int, cores: int) -> None:
    monkeypatch.setattr(suggestions, "read_free_memory", lambda: free_gb * 10**9)
    machine = SimpleNamespace(cpu_count=lambda logical: 2 * cores if logical else cores)
    monkeypatch.setattr(suggestions, "psutil", machine)


def test_weights_that_are_here_are_only_used(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_machine(monkeypatch, 64, 8)
    told = asyncio.run(suggest_model(mgl_home))
    assert told is not None
    assert "`mgl models get qwen2.5-7b-q4 --allow-hub`, then `mgl use qwen2.5-7b-q4`" in told
    monkeypatch.setattr(suggestions, "find_weights", lambda *_: mgl_home)
    told = asyncio.run(suggest_model(mgl_home))
    assert told == "qwen2.5-7b-q4 fits this machine: `mgl use qwen2.5-7b-q4`"


def test_weights_that_are_damaged_do_not_stop_what_runs_without_them(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_machine(monkeypatch, 64, 4)
    damaged = mgl_home / "weights" / "qwen3-4b-q4" / load_profiles()["qwen3-4b-q4"].weights.filename
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"damaged")
    told = asyncio.run(suggest_model(mgl_home))
    assert told is not None
    assert "`mgl models get qwen3-4b-q4 --allow-hub`, then" in told


OWN_ON_LLAMA = {
    "id": "qwen2.5-coder-1.5b",
    "owned_by": "llamacpp",
    "meta": {"n_params": 1_543_714_304},  # its name says 1.5B
}


@pytest.mark.parametrize(
    ("entry", "is_better"),
    [
        ({"id": "llama3.2:1b"}, False),
        ({"id": "llama3.2:3b"}, True),
        ({"id": "a-model"}, True),
        (OWN_ON_LLAMA, False),
    ],
)
def test_a_model_that_is_smaller_than_ours_or_ours_is_not_proposed(
    entry: dict[str, Any], is_better: bool, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_machine(monkeypatch, 1, 1)
    routes = {"/v1/models": {"data": [entry]}, "/props": {"build_info": "b1"}}
    with serving(routes) as server:
        monkeypatch.setattr(nearby, "PORTS", (int(server.url.rsplit(":", 1)[1]),))
        told = asyncio.run(suggest_model(mgl_home))
    assert (told is not None and f"--model {entry['id']}`" in told) == is_better


class Notes:
    """An observer that keeps what is noted."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def progress(self, stage: str, done: int, total: int) -> None: ...

    def note(self, text: str) -> None:
        self.noted.append(text)


@pytest.mark.parametrize("model", [None, "qwen2.5-coder-1.5b"])
def test_the_first_start_names_a_better_model_before_the_default_is_downloaded(
    model: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_machine(monkeypatch, 64, 8)

    def refuse(*_: object, **__: object) -> None:
        raise ResourceError("no network", hint="none")

    monkeypatch.setattr(fetch, "fetch_weights", refuse)
    (tmp_path / "book.txt").write_text("Ann met Bo.")
    seen = Notes()
    with Lab.open(model, observer=seen) as lab, pytest.raises(ResourceError, match="no network"):
        lab.ask(tmp_path / "book.txt", "Who met Bo?", memory="direct")
    named = [text for text in seen.noted if "`mgl use qwen2.5-7b-q4`" in text]
    assert len(named) == (model is None)
