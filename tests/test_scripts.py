"""The scripts' own decisions: which Python, and whether there is anything to install."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parent.parent / "scripts"


def shell(command: str, folder: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", "-c", f"set -euo pipefail; source scripts/_env.sh; {command}"],
        cwd=folder,
        env={**os.environ, "PATH": str(path)} if path else None,
        capture_output=True,
        text=True,
        check=False,
    )


def executable(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose .venv holds a Python that notes what it is asked to do."""
    folder = tmp_path / "checkout"
    shutil.copytree(SCRIPTS, folder / "scripts")
    (folder / "pyproject.toml").write_text("[project]\n")
    executable(folder / ".venv" / "bin" / "python", 'echo "$@" >> asked\n')
    return folder


def asked(checkout: Path) -> list[str]:
    """What pip was asked to install since last asked."""
    notes = checkout / "asked"
    lines = notes.read_text().splitlines() if notes.exists() else []
    notes.unlink(missing_ok=True)
    return [line.split()[-1] for line in lines if "pip install" in line]


def test_too_old_pythons_are_passed_over(tmp_path: Path, checkout: Path) -> None:
    executable(tmp_path / "bin" / "python3.13", "exit 1")
    executable(tmp_path / "bin" / "python3", "exit 0")
    found = shell("find_python", checkout, tmp_path / "bin")
    assert found.stdout.strip() == str(tmp_path / "bin" / "python3")


def test_a_machine_without_a_fitting_python_is_told_so(tmp_path: Path, checkout: Path) -> None:
    executable(tmp_path / "bin" / "python3", "exit 1")
    failed = shell("find_python", checkout, tmp_path / "bin")
    assert failed.returncode != 0
    assert "Python 3.11 or newer" in failed.stderr


def test_nothing_is_installed_twice_until_the_project_file_changes(checkout: Path) -> None:
    assert shell("ensure_venv base", checkout).returncode == 0
    assert asked(checkout) == ["."]
    assert shell("ensure_venv base", checkout).returncode == 0
    assert asked(checkout) == []
    assert shell("ensure_venv dev", checkout).returncode == 0
    assert asked(checkout) == [".[dev]"]
    assert shell("ensure_venv base; ensure_venv dev", checkout).returncode == 0
    assert asked(checkout) == []
    (checkout / "pyproject.toml").write_text("[project]\nname = 'changed'\n")
    assert shell("ensure_venv base", checkout).returncode == 0
    assert asked(checkout) == ["."]
    assert shell("ensure_venv dev", checkout).returncode == 0
    assert asked(checkout) == [".[dev]"]


def test_a_failed_installation_shows_why_and_is_tried_again(checkout: Path) -> None:
    executable(
        checkout / ".venv" / "bin" / "python",
        'case "$*" in *"pip install"*) echo "ERROR: no such package"; exit 1 ;; esac',
    )
    failed = shell("ensure_venv base", checkout)
    assert failed.returncode != 0
    assert "ERROR: no such package" in failed.stderr
    assert not list((checkout / ".venv").glob(".installed-*"))


MGL = """\
echo "$@" >> mgl-asked
case "$1" in
    ask) echo "memory: m-1 (mgl show m-1)" ;;
    serve)
        [ ! -e broken ] || { echo "error: no NVIDIA driver" >&2; exit 5; }
        [ "$2" != status ] || [ ! -e state ] || echo "8000  $(cat state)" ;;
esac
"""


def gpu(checkout: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run ``scripts/gpu`` with a stand-in for mgl; returns what it was asked, too."""
    executable(checkout / ".venv" / "bin" / "mgl", MGL)
    done = subprocess.run(
        [checkout / "scripts" / "gpu", *words], capture_output=True, text=True, check=False
    )
    notes = checkout / "mgl-asked"
    lines = notes.read_text().splitlines() if notes.exists() else []
    notes.unlink(missing_ok=True)
    return done, lines


def test_a_gpu_box_is_set_up_and_asked_by_the_papers_method(checkout: Path) -> None:
    done, asked = gpu(checkout)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in asked] == ["serve", "models", "serve", "ask", "export"]
    assert asked[3].endswith("--preset paper")
    assert asked[4].startswith("export m-1 --format html")
    assert f"file://{checkout}/runs/gpu.html" in done.stderr


def test_a_dry_run_of_a_gpu_box_does_nothing(checkout: Path) -> None:
    done, asked = gpu(checkout, "--dry-run", "--card", "NVIDIA L4,24")
    assert done.returncode == 0, done.stderr
    assert asked == ["serve setup --dry-run --card NVIDIA L4,24"]
    assert "--preset" in done.stdout
    assert not (checkout / "runs").exists()


def test_a_pretended_card_is_the_cpu_build(checkout: Path) -> None:
    executable(checkout / "scripts" / "serve-cpu", 'echo "serve-cpu $1" >> mgl-asked')
    done, asked = gpu(checkout, "--pretend")
    assert done.returncode == 0, done.stderr
    model = "qwen2.5-coder-1.5b"
    assert asked[:3] == [
        f"serve-cpu {model}",
        "serve status",
        f"serve start cpu --model {model} --detach",
    ]
    assert [line.split()[0] for line in asked[3:]] == ["models", "serve", "ask", "export"]
    assert gpu(checkout, "--pretend", "--dry-run")[0].returncode == 2


@pytest.mark.parametrize(("state", "is_started"), [("ready", False), ("failed: no memory", True)])
def test_a_pretended_card_starts_a_server_unless_one_is_ready(
    checkout: Path, state: str, is_started: bool
) -> None:
    """One that has failed is listed until somebody has seen it."""
    executable(checkout / "scripts" / "serve-cpu", "")
    (checkout / "state").write_text(f"qwen2.5-coder-1.5b  generate  cpu  0  -  {state}\n")
    done, asked = gpu(checkout, "--pretend")
    assert done.returncode == 0, done.stderr
    assert ("serve start cpu --model qwen2.5-coder-1.5b --detach" in asked) == is_started


def test_a_box_without_a_card_asks_nothing(checkout: Path) -> None:
    (checkout / "broken").touch()
    done, asked = gpu(checkout)
    assert done.returncode == 5
    assert asked == ["serve setup"]
