"""``mgl proxy`` as a shell runs it: detached, asked, stopped, and again without a model."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mgl import processes
from tests.cli.conftest import SERVED, Mgl
from tests.cli.server import Server
from tests.cli.shell import free_port
from tests.patience import PATIENCE_S


def ask(port: int) -> Any:
    asked = {"model": SERVED, "messages": [{"role": "user", "content": "How many met?"}]}
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    return httpx.post(url, json=asked, trust_env=False, timeout=PATIENCE_S).json()


@pytest.fixture
def port() -> Iterator[int]:
    with free_port("proxies") as number:
        yield number


def test_detached_recorded_and_replayed_without_a_model(
    mgl_leaving: Mgl, server: Server, options: tuple[str, ...], port: int
) -> None:
    stop = ("proxy", "--stop", "--port", port)
    command = ("proxy", "--port", port, *options, "--detach")
    ready = mgl_leaving(*command, code=0).stdout
    assert f"{SERVED} is ready at http://127.0.0.1:{port}/v1" in ready
    said = ask(port)
    assert said["choices"][0]["message"]["content"]
    sent = len(server.seen)
    assert f"stopped the proxy on port {port}" in mgl_leaving(*stop).stdout
    mgl_leaving(*command, "--replay", code=0)
    assert ask(port) == said
    mgl_leaving(*stop)
    assert len(server.seen) == sent
    assert "no proxy was detached" in mgl_leaving(*stop).stdout


def test_its_key_is_not_among_the_arguments_that_all_users_see(
    mgl_leaving: Mgl, options: tuple[str, ...], port: int, mgl_home: Path
) -> None:
    keys = ("--key", "simsim", "--key=sesame")  # the last counts
    mgl_leaving("proxy", "--port", port, *options, *keys, "--detach", code=0)
    token = json.loads((mgl_home / "proxies" / f"{port}.json").read_text())["token"]
    started = processes.find_processes(token)
    assert started
    shown = str([each.cmdline() for each in started])
    assert "sesame" not in shown
    assert "simsim" not in shown
    url = f"http://127.0.0.1:{port}/v1/models"
    right = {"Authorization": "Bearer sesame"}
    assert httpx.get(url, trust_env=False).status_code == 401
    assert httpx.get(url, headers=right, trust_env=False).status_code == 200
    mgl_leaving("proxy", "--stop", "--port", port)
    assert "sesame" not in (mgl_home / "proxies" / f"{port}.log").read_text()


def test_a_port_that_is_taken_is_named(mgl: Mgl, options: tuple[str, ...]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = mgl("proxy", "--port", port, *options)
    assert done.exit_code == 2
    assert f"port {port} cannot be used" in done.stderr
