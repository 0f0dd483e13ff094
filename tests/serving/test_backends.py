"""Which library compiles constraints: measured once, in a Python that has some of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tokenizers import ByteLevelBPETokenizer

from mgl.errors import ResourceError
from mgl.serving import backends
from mgl.serving.backends import choose_backend, find_fastest, make_schemas, measure_backends
from mgl.serving.machine import ServerEnvironment
from tests.patience import PATIENCE_S

HERE = ServerEnvironment(Path(sys.executable), "vllm", "0.32.0")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a byte-level tokenizer."""
    folder = tmp_path / "model"
    folder.mkdir()
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(["Ann met Bo in Rome."], special_tokens=["<|endoftext|>"])
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def test_the_fastest_that_compiles_everything_in_time_is_taken() -> None:
    assert find_fastest({"guidance": {"a": 0.2, "b": 0.2}, "outlines": {"a": 0.1, "b": 0.1}}) == (
        "outlines"
    )
    assert find_fastest({"guidance": {"a": 0.2}, "outlines": {"a": None}}) == "guidance"
    assert find_fastest({"outlines": {"a": None}}) == find_fastest({}) == "guidance"


def test_guidance_compiles_what_memories_ask_for(model: Path) -> None:
    schemas = make_schemas()
    costs = measure_backends(HERE.python, model / "tokenizer.json", schemas, limit=PATIENCE_S)
    assert costs["guidance"].keys() == schemas.keys()
    assert None not in costs["guidance"].values()


def test_what_is_not_compiled_in_time_counts_as_not_compiled(model: Path) -> None:
    costs = measure_backends(
        HERE.python, model / "tokenizer.json", {"a": {"type": "nonsense"}}, limit=PATIENCE_S
    )
    assert costs["guidance"] == {"a": None}


def test_a_model_is_measured_once_and_the_choice_is_told(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Path] = []

    def measure(python: Path, tokenizer: Path, schemas: object) -> backends.Costs:
        del python, schemas
        asked.append(tokenizer)
        return {"guidance": {"a": 2.0}, "outlines": {"a": 1.0}, "xgrammar": {"a": None}}

    monkeypatch.setattr(backends, "measure_backends", measure)
    notes: list[str] = []
    for _ in range(2):
        assert choose_backend(HERE, model, tmp_path / "home", note=notes.append) == "outlines"
    assert len(asked) == 1
    assert "outlines 1.00 s; xgrammar 0.00 s, 1 of 1 not in 5 s" in notes[-1]
    assert choose_backend(HERE, tmp_path, tmp_path / "home", note=notes.append) == "guidance"


def test_a_python_that_cannot_run_it_is_named(model: Path, tmp_path: Path) -> None:
    (model / "tokenizer.json").write_text(json.dumps({"broken": True}))
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no module >&2\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(ResourceError, match="could not be measured: no module"):
        measure_backends(broken, model / "tokenizer.json", make_schemas())
