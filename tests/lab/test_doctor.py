from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from mgl.lab import doctor, suggestions
from mgl.lab.doctor import Check, _import_error, examine
from tests.openai.answering import Answered, models, serving
from tests.serving.conftest import free_port

SERVED = """\
name: served
description: a test
licence: MIT
source: https://example.org/served
parameters: 1B
context_tokens: 4096
engine: openai
weights: {format: safetensors, hub: {repo: example/served}}
"""
TINY = """\
name: tiny
description: a test
licence: MIT
source: https://example.org/tiny
parameters: "0"
context_tokens: 128
engine: openvino
weights:
  format: gguf
  bytes: 5
  sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
  hub: {repo: example/tiny, file: tiny.gguf}
"""


@pytest.fixture
def tiny(mgl_home: Path) -> Path:
    """The weights of a profile called tiny, in the home folder."""
    (mgl_home / "models").mkdir()
    (mgl_home / "models" / "tiny.yaml").write_text(TINY)
    path = mgl_home / "weights" / "tiny" / "tiny.gguf"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"hello")
    return path


@pytest.fixture(autouse=True)
def _engines_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the real engines takes seconds; one test of its own does so."""
    monkeypatch.setattr(doctor, "_import_error", lambda _modules: "")


def checks(model: str, **options: str) -> dict[str, Check]:
    found = {check.name: check for check in examine(model, **options)}
    for check in found.values():
        assert check.detail
        assert check.ok or check.hint, f"{check.name} does not say what to do"
    return found


def test_a_machine_with_all_that_is_needed(tiny: Path) -> None:
    found = checks("tiny")
    assert [name for name, check in found.items() if not check.ok] == []
    assert found["weights tiny"].detail.startswith(f"{tiny}, sha256 2cf24dba5fb0")
    assert "openvino-genai 20" in found["engine openvino"].detail
    assert "pydantic 2" in found["packages"].detail
    assert "server" not in found


def test_missing_weights_say_how_to_get_them(mgl_home: Path) -> None:
    found = checks("smollm2-135m")
    assert not found["weights smollm2-135m"].ok
    assert found["weights smollm2-135m"].hint == "mgl models get smollm2-135m"
    assert str(mgl_home) in found["home"].detail


def test_weights_that_were_changed_unnoticed_are_found(tiny: Path) -> None:
    assert checks("tiny")["weights tiny"].ok
    before = tiny.stat()
    tiny.write_bytes(b"hellO")
    os.utime(tiny, ns=(before.st_atime_ns, before.st_mtime_ns))
    check = checks("tiny")["weights tiny"]
    assert not check.ok
    assert "wrong sha256" in check.detail


def test_an_unknown_profile_ends_the_examination() -> None:
    found = checks("smollm")
    assert list(found)[-1] == "profile"
    assert "smollm2-135m" in found["profile"].hint


def test_a_home_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MGL_HOME", str(tmp_path / "file"))
    found = checks("smollm2-135m")
    assert not found["home"].ok
    assert "MGL_HOME" in found["home"].hint
    assert "memory" in found


@pytest.mark.usefixtures("tiny")
def test_too_little_disk_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=1_000_000))
    monkeypatch.setattr(doctor, "read_free_memory", lambda: 10**6)
    found = checks("tiny")
    assert not found["disk"].ok
    assert not found["memory"].ok
    assert "smaller profile" in found["memory"].hint


def test_an_engine_that_is_missing_or_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_import_error", lambda _modules: "ImportError: no symbol")
    assert "no symbol" in checks("smollm2-135m")["engine openvino"].detail
    monkeypatch.setitem(doctor._ENGINES, "openvino", ("nothing",))
    assert "missing: nothing" in checks("smollm2-135m")["engine openvino"].detail


def test_imports_are_tried_in_a_process_of_their_own() -> None:
    assert _import_error(["json", "zipfile"]) == ""
    assert _import_error(["json", "no_such_module_here"]).startswith("ModuleNotFoundError")
    assert _import_error(["os; os.abort()"]) == "exit code -6"


LISTED = models("smollm2-135m")
LISTED["data"].append({"id": "llama3.1:8b"})


def test_a_server_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MGL_API_KEY", "sesame")
    with serving({"/v1/models": LISTED}) as server:
        found = checks("smollm2-135m", base_url=f"{server.url}/v1")
        assert [name for name, check in found.items() if not check.ok] == []
        assert "smollm2-135m, llama3.1:8b" in found["server"].detail
        assert "not needed" in found["weights smollm2-135m"].detail
        assert server.seen[0][1]["Authorization"] == "Bearer sesame"


def test_a_served_model_needs_no_profile() -> None:
    with serving({"/v1/models": LISTED}) as server:
        found = checks("llama3.1:8b", base_url=server.url)
        assert [name for name, check in found.items() if not check.ok] == []
        assert "llama3.1:8b is used as its server describes it" in found["profile"].detail


@pytest.mark.parametrize("model", ["qwen2.5-7b-instruct", "llama3.2:1b"])
def test_a_model_that_the_server_has_not_is_said(model: str) -> None:
    with serving({"/v1/models": LISTED}) as server:
        check = checks(model, base_url=server.url)["profile"]
    assert not check.ok
    assert "it serves smollm2-135m, llama3.1:8b" in check.detail


@pytest.mark.parametrize("answer", [Answered(401, {"error": "Unauthorized"}), "<html>hi</html>"])
def test_a_server_that_is_not_as_needed(answer: Answered | str) -> None:
    with serving({"/v1/models": answer}) as server:
        assert not checks("smollm2-135m", base_url=server.url)["server"].ok


def test_a_server_that_is_down_or_not_named() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    assert not checks("smollm2-135m", base_url=url)["server"].ok
    assert not checks("smollm2-135m", base_url="http://[")["server"].ok
    assert "none is named" in checks("qwen2.5-7b-instruct")["server"].detail


def test_it_says_why_no_better_model_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestions.psutil, "cpu_count", lambda logical: None if logical else 2)
    monkeypatch.setattr(suggestions, "read_free_memory", lambda: 3_000_000_000)
    why, what = suggestions.explain_none().split("; ")
    assert "no larger profile fits 2 cores and 3.0 GB of free memory" in why
    assert what.endswith("then run `mgl doctor` again")
