"""A model with real weights in a process of its own, and what happens when processes are killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from mgl.llm.base import Message, Request, Sampling
from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client, Policy
from mgl.llm.engines import shared
from mgl.llm.engines.host import Model
from mgl.llm.engines.openvino import OpenVinoEngine
from mgl.llm.engines.shared import SharedEngine, list_hosts, stop_host
from mgl.llm.progress import listen
from mgl.llm.schemas import json_schema
from tests.llm.shapes import Answer, Figures
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.weights

ASK = (Message("system", "Reply in JSON."), Message("user", "Ann met Bo. Who met Bo?"))
TALE = (Message("user", "Tell a very long story."),)


@pytest.fixture
def model(mgl_home: Path, smollm2_weights: Path, converted_weights: Path) -> Model:
    cache = converted_weights / "smollm2-135m"
    return Model.find(mgl_home, smollm2_weights, model_id="m", context_tokens=2048, cache=cache)


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_STATUS_S", PATIENCE_S)


def pid(home: Path) -> int:
    (host,) = list_hosts(home)
    return host.pid


async def test_replies_and_counts_are_those_of_an_engine_in_this_process(
    model: Model, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGL_ENGINE_IDLE", "300")
    short = Sampling(max_tokens=16)
    requests = [Request(ASK, json_schema(shape), sampling=short) for shape in (Answer, Figures)]
    requests += [
        Request(ASK, sampling=short),
        Request(ASK, sampling=replace(short, temperature=0.8, top_p=0.9, seed=3)),
        Request(ASK, choices=("Yes", "No"), sampling=Sampling(max_tokens=4)),
        Request((Message("user", "naïve \ud83d\ude00 \x00 “quotes”\n"),), sampling=short),
    ]
    texts = ["hello world", "", "x y" * 3000, " a\u2028b "]

    engine = await SharedEngine.open(model)
    said: list[str] = []
    with listen(said.append):
        there = [await engine.generate(request) for request in requests]
    counted = [await engine.count_prompt_tokens(request) for request in requests]
    counted += await engine.count_tokens(texts)
    assert said[-1].startswith(there[-1].text)
    assert there[4].logprobs

    # Commands share the process.
    (host,) = await asyncio.to_thread(list_hosts, mgl_home)
    other = await SharedEngine.open(model)
    assert await asyncio.to_thread(pid, mgl_home) == host.pid
    await asyncio.to_thread(stop_host, host)
    await until(lambda: not is_alive(host.pid))
    await engine.aclose()
    await other.aclose()

    own = await asyncio.to_thread(
        OpenVinoEngine,
        model.weights,
        model_id="m",
        context_tokens=2048,
        cache_gb=1,
        cache=model.cache,
    )
    assert there == [await own.generate(request) for request in requests]
    expected = [await own.count_prompt_tokens(request) for request in requests]
    assert counted == expected + await own.count_tokens(texts)
    await own.aclose()


async def test_a_killed_process_is_started_again_by_whoever_needs_it(
    model: Model, mgl_home: Path
) -> None:
    model.place.parent.mkdir()
    with socket.socket(socket.AF_UNIX) as stale:  # as a killed process leaves one
        stale.bind(str(model.socket))
    one, other = await asyncio.gather(SharedEngine.open(model), SharedEngine.open(model))
    first = await asyncio.to_thread(pid, mgl_home)  # one process, whoever started it

    log = MemoryCallLog()
    llm = Client(one, log, Policy(timeout_s=300, backoff_s=0.1))
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    with listen(lambda _: loop.call_soon_threadsafe(begun.set)):
        calls = [
            asyncio.create_task(
                llm.complete([Message("user", f"Count to {n}.")], sampling=Sampling(max_tokens=40))
            )
            for n in (7, 8)
        ]
    await begun.wait()
    os.kill(first, signal.SIGKILL)
    replies = await asyncio.gather(*calls, return_exceptions=True)
    assert not [reply for reply in replies if isinstance(reply, BaseException)], replies
    second = await asyncio.to_thread(pid, mgl_home)
    assert second != first
    assert (await other.generate(Request(ASK, sampling=Sampling(max_tokens=3)))).text
    assert await asyncio.to_thread(pid, mgl_home) == second
    await one.aclose()
    await other.aclose()


OWNER = """
import asyncio, sys
from pydantic import TypeAdapter
from mgl.llm.base import Message, Request, Sampling
from mgl.llm.engines.host import Model
from mgl.llm.engines.shared import SharedEngine
from mgl.llm.progress import listen

async def main():
    engine = await SharedEngine.open(TypeAdapter(Model).validate_json(sys.stdin.buffer.read()))
    with listen(lambda _: print("begun", flush=True)):
        await engine.generate(Request((Message("user", "Count for ever."),),
                                      sampling=Sampling(max_tokens=1900)))

asyncio.run(main())
"""


async def test_a_killed_owner_leaves_a_process_that_ends_by_itself(
    model: Model, mgl_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MGL_ENGINE_IDLE", "3")
    with subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdin is not None
        assert owner.stdout is not None
        owner.stdin.write(json.dumps(asdict(model), default=str).encode())
        owner.stdin.close()
        assert await asyncio.to_thread(owner.stdout.readline) == b"begun\n"
        left = await asyncio.to_thread(pid, mgl_home)
        owner.kill()
    await until(lambda: not model.socket.exists())
    await until(lambda: not is_alive(left))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
