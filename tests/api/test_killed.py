"""A server that is killed while turns come in: what it acknowledged is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import httpx

from tests.patience import PATIENCE_S, wait_until
from tests.serving.conftest import free_port

CLIENTS = 4
ACKNOWLEDGED = 60
KEY = "mine"


def start(home: Path, port: int) -> subprocess.Popen[bytes]:
    """Start `mgl up` in a process group of its own; no model runs for what is appended."""
    words = ["-m", "mgl", "up", "--port", f"{port}", "--model", "smollm2-135m", "--rate", "0"]
    process = subprocess.Popen(
        [sys.executable, *words],
        env={**os.environ, "MGL_HOME": str(home), "MGL_UP_KEY": KEY},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(lambda: is_up(process, port))
    return process


def is_up(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None
    try:
        httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False, timeout=PATIENCE_S)
    except httpx.HTTPError:
        return False
    return True


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def connect(port: int) -> httpx.Client:
    return httpx.Client(
        base_url=f"http://127.0.0.1:{port}",
        headers={"Authorization": f"Bearer {KEY}"},
        trust_env=False,
        timeout=PATIENCE_S,
    )


def test_no_acknowledged_turn_is_lost_when_it_is_killed(mgl_home: Path) -> None:
    port, acknowledged, enough = free_port(), [[""] for _ in range(CLIENTS)], threading.Event()
    process = start(mgl_home, port)

    def append(client: int) -> None:
        """Append to a conversation that all share, until the server is gone."""
        with connect(port) as http:
            for number in range(10_000):
                text = f"client {client} says {number}"
                try:
                    answer = http.post(
                        "/api/conversations/shared/turns", json={"turns": [{"text": text}]}
                    )
                except httpx.HTTPError:
                    return
                assert answer.status_code == 201
                acknowledged[client].append(text)
                if sum(map(len, acknowledged)) > ACKNOWLEDGED:
                    enough.set()

    clients = [threading.Thread(target=append, args=(client,)) for client in range(CLIENTS)]
    for thread in clients:
        thread.start()
    assert enough.wait(PATIENCE_S)
    kill(process)
    for thread in clients:
        thread.join()
    process = start(mgl_home, port)
    try:
        with connect(port) as http:
            stored = [
                turn["text"] for turn in http.get("/api/memories/shared/export").json()["turns"]
            ]
            assert (
                http.post(
                    "/api/conversations/shared/turns", json={"turns": [{"text": "after"}]}
                ).status_code
                == 201
            )
    finally:
        kill(process)
    assert len(stored) == len(set(stored))
    for client, texts in enumerate(acknowledged):
        own = [text for text in stored if text.startswith(f"client {client} ")]
        assert own[: len(texts) - 1] == texts[1:]
        assert len(own) <= len(texts)  # the one that was on its way may be there, too
