"""Environments are made from a lock with hashes, and from nothing else."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from mgl.errors import ResourceError, UsageError
from mgl.peers import environments
from mgl.peers.environments import LOCKS, PEERS, find_installed, find_python, install, lock_hash
from mgl.serving import installing

MARK = "installed.json"


@pytest.mark.parametrize("name", PEERS)
def test_a_lock_pins_each_package_and_each_file(name: str) -> None:
    lines = (LOCKS / f"{name}.txt").read_text().splitlines()
    text = "\n".join(lines)
    assert f"{PEERS[name].package}=={PEERS[name].version}" in text
    assert "://" not in text, "a lock names no registry"
    for block in re.split(r"\n(?=\S)", text):
        assert re.match(r"[a-z0-9-]+==\S+", block)
        assert "--hash=sha256:" in block


def test_it_is_installed_only_as_its_lock_says(tmp_path: Path) -> None:
    assert find_installed(tmp_path, "mem0") is None
    with pytest.raises(ResourceError, match="mem0 is not installed"):
        find_python(tmp_path, "mem0")
    folder = tmp_path / "peers" / "mem0"
    folder.mkdir(parents=True)
    made = {"lock": lock_hash("mem0"), "python": "3.11.7", "seconds": 2.5, "megabytes": 182}
    (folder / MARK).write_text(json.dumps(made))
    assert find_python(tmp_path, "mem0").parent.parent == folder
    (folder / MARK).write_text(json.dumps({**made, "lock": "another"}))
    assert find_installed(tmp_path, "mem0") is None


def test_a_lock_makes_an_environment_and_a_file_without_a_hash_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "LOCKS", tmp_path)
    run = installing.run

    def run_own_pip(command: list[str]) -> str:
        """Installing a pip of its own takes an environment seconds, and nothing takes pip one."""
        if command[1:3] == ["-m", "venv"]:
            return run([*command, "--without-pip"])
        if command[1:3] == ["-m", "pip"]:
            if not (tmp_path / "mem0.txt").read_text():
                return ""
            return run([sys.executable, "-m", "pip", "--python", command[0], *command[3:]])
        return run(command)

    monkeypatch.setattr(installing, "run", run_own_pip)
    (tmp_path / "mem0.txt").write_text("mem0ai==1.0.11\n")
    with pytest.raises(ResourceError, match=r"(?i)hash"):
        install(tmp_path, "mem0", report=lambda _: None)
    assert find_installed(tmp_path, "mem0") is None
    (tmp_path / "mem0.txt").write_text("")
    said: list[str] = []
    made = install(tmp_path, "mem0", report=said.append)
    assert find_installed(tmp_path, "mem0") == made
    assert find_python(tmp_path, "mem0").exists()
    assert "mem0ai 1.0.11" in said[0]


def test_an_old_python_and_an_unknown_peer_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = environments.Peer("mem0", "mem0ai", "1", "MIT", "facts", (3, 99))
    monkeypatch.setattr(environments, "PEERS", {"mem0": newer})
    with pytest.raises(ResourceError, match="or newer, and"):
        install(tmp_path, "mem0", python=Path(sys.executable), report=lambda _: None)
    with pytest.raises(UsageError, match="no peer 'zep'"):
        install(tmp_path, "zep", report=lambda _: None)
