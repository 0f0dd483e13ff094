from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Mgl

PROFILE = """\
name: tiny
description: For a test.
licence: CC0-1.0
source: https://example.org/tiny
parameters: 1K
context_tokens: 64
engine: openvino
weights:
  format: gguf
  bytes: 4
  sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  hub: {repo: example/tiny, file: tiny.gguf}
"""


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    folder = tmp_path / "profiles"
    folder.mkdir()
    (folder / "tiny.yaml").write_text(PROFILE)
    return folder


@pytest.fixture
def tiny(mgl_home: Path) -> Path:
    path = mgl_home / "weights" / "tiny" / "tiny.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"test")
    return path


def test_list_shows_licence_source_and_whether_weights_are_here(mgl: Mgl, profiles: Path) -> None:
    lines = mgl("models", "--models", profiles).stdout.splitlines()
    assert lines[0].split() == [
        *("NAME", "SIZE", "TASK", "ENGINE", "CONTEXT", "LICENCE", "WEIGHTS", "SOURCE")
    ]
    (row,) = [line.split() for line in lines if line.startswith("tiny ")]
    assert row == [
        *("tiny", "1K", "generate", "openvino", "64", "CC0-1.0", "-", "https://example.org/tiny")
    ]


def test_json_says_what_a_model_does_and_where_its_weights_are(
    mgl: Mgl, profiles: Path, tiny: Path
) -> None:
    listed = json.loads(mgl("models", "--models", profiles, "--json").stdout)
    (entry,) = [item for item in listed if item["name"] == "tiny"]
    assert (entry["path"], entry["licence"]) == (str(tiny), "CC0-1.0")
    does = {item["name"]: (item["task"], item["engine"]) for item in listed}
    assert does["tiny"] == ("generate", "openvino")
    assert does["all-minilm-l6-v2"] == ("embed", "openvino")
    assert does["qwen3-embedding-0.6b"] == ("embed", "sentence-transformers")
    assert (does["bge-m3"][0], does["bge-reranker-v2-m3"][0]) == ("embed", "rerank")
    assert {"qwen2.5-coder-1.5b", "smollm2-135m"} < does.keys()
    assert mgl("models", "get", "tiny", "--models", profiles).stdout == f"{tiny}\n"


def test_wrong_weights_are_named_and_never_listed_as_here(
    mgl: Mgl, profiles: Path, tiny: Path
) -> None:
    tiny.write_bytes(b"evil")
    result = mgl("models", "--models", profiles, code=0)
    assert "tiny" in result.stderr
    (row,) = [line.split() for line in result.stdout.splitlines() if line.startswith("tiny ")]
    assert row[6] == "-"


def test_files_that_no_profile_pins_are_told_by_their_hash(mgl: Mgl, mgl_home: Path) -> None:
    names = ["tiny-00001-of-00002.gguf", "tiny-00002-of-00002.gguf"]
    unpinned = re.sub(r"  (bytes|sha256): .*\n", "", PROFILE).replace("tiny.gguf", names[0])
    (mgl_home / "models").mkdir()
    (mgl_home / "models" / "tiny.yaml").write_text(unpinned)
    folder = mgl_home / "weights" / "tiny"
    folder.mkdir(parents=True)
    hashes = {}
    for name, content in zip(names, (b"one", b"two"), strict=True):
        (folder / name).write_bytes(content)
        hashes[name] = hashlib.sha256(content).hexdigest()
    got = mgl("models", "get", "tiny")
    assert got.stdout == f"{folder / names[0]}\n"
    assert all(f"{name} has sha256 {sha256}\n" in got.stderr for name, sha256 in hashes.items())
    assert json.loads(mgl("models", "get", "tiny", "--json").stdout)["sha256"] == hashes


def test_missing_weights_lead_to_a_command_that_takes_its_options(mgl: Mgl, profiles: Path) -> None:
    refused = mgl("models", "get", "tiny", "--models", profiles, code=5)
    command = "mgl models get tiny --allow-hub"
    assert command in refused.stderr
    taken = mgl("models", "get", "--help").stdout
    assert all(word in taken for word in command.split() if word.startswith("--"))
