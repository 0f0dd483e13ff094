"""``mgl up`` as a shell runs it: detached, asked by its key, stopped."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import httpx
import pytest

from mgl.errors import EngineUnavailable, install_hint
from tests.cli.conftest import Mgl
from tests.cli.server import Server
from tests.cli.shell import free_port, run_shell
from tests.patience import PATIENCE_S

MODEL = "qwen2.5-7b-instruct"


run = partial(run_shell, "up")


@pytest.fixture
def port() -> Iterator[int]:
    with free_port("up") as number:
        yield number


def test_detached_with_a_key_for_each_tenant(
    mgl: Mgl, server: Server, port: int, mgl_home: Path
) -> None:
    stop = ("up", "--stop", "--port", port)
    choice = ("--port", port, "--model", MODEL, "--base-url", server.url, "--tenant", "ann")
    ready, look, ann = run(*choice, "--detach").splitlines()
    assert ready.startswith(f"ready at http://127.0.0.1:{port}/v1 with the key mgl-")
    assert look.endswith(f": http://127.0.0.1:{port}/inspect/#key={ready.split()[-1]}")
    assert ann.startswith("ann: mgl-")
    for key in (ready.split()[-1], ann.split()[-1]):
        answer = httpx.get(
            f"http://127.0.0.1:{port}/v1/models",
            headers={"Authorization": f"Bearer {key}"},
            trust_env=False,
        )
        names = [each["id"] for each in answer.json()["data"]]
        assert names == ["mgl/gam", "mgl/mnemis", MODEL]
    assert f"stopped the server on port {port}" in mgl(*stop).stdout
    assert "no server was detached" in mgl(*stop).stdout
    assert (mgl_home / "tenants" / "ann" / "mgl.sqlite").exists()


@pytest.mark.usefixtures("mgl_home")
def test_detached_without_the_extra_says_what_to_install(port: int, tmp_path: Path) -> None:
    missing = tmp_path / "uvicorn.py"
    missing.write_text("raise ModuleNotFoundError('none', name='uvicorn')")
    done = subprocess.run(
        [sys.executable, "-m", "mgl", "up", "--port", f"{port}", "--detach"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == EngineUnavailable.exit_code
    error, hint = done.stderr.splitlines()
    assert error == "error: the server needs uvicorn"
    assert hint == f"hint: {install_hint('server')}"


def test_another_host_needs_a_key(mgl: Mgl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MGL_API_KEY", raising=False)
    done = mgl("up", "--host", "0.0.0.0")
    assert done.exit_code == 2
    assert "no key was given" in done.stderr
    assert os.environ.get("MGL_API_KEY") is None


def test_a_model_that_is_not_there_is_named_at_once(mgl: Mgl) -> None:
    done = mgl("up", "--port", "1", "--model", "none-such")
    assert done.exit_code == 2
