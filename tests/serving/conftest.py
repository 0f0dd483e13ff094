from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import pytest

from mgl import processes
from mgl.serving import records
from mgl.serving.plan import LaunchPlan

FAKE = Path(__file__).with_name("fake_vllm.py")


def free_port() -> int:
    """A port that is free, and that no system gives to somebody who asks for any."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            return port


def plan_of(port: int, *options: object, model: str = "tiny") -> LaunchPlan:
    """A plan that starts the fake server."""
    words = ("--port", port, "--name", model, *options)
    return LaunchPlan(
        profile="cpu",
        model=model,
        task="generate",
        served_name=model,
        command=(sys.executable, "-S", "-E", str(FAKE), *map(str, words)),
        env={"OMP_NUM_THREADS": "1"},
        host="127.0.0.1",
        port=port,
        elsewhere=(),
        adapters={},
    )


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture(autouse=True)
def _one_kind_of_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures do not depend on the machine that the tests run on."""
    monkeypatch.setattr("mgl.serving.profile.native_float", lambda: "bfloat16")


@pytest.fixture(autouse=True)
def _nothing_left(mgl_home: Path) -> Iterator[None]:
    """Whatever a test started and did not end is ended after it."""
    yield
    for record in [
        *records.list_running(mgl_home),
        *(left.record for left in records.find_leftovers(mgl_home)),
    ]:
        processes.end_processes(record.token, patience_s=0.0)
