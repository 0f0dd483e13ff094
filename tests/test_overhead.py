"""What mgl adds to a model call, measured against a server that answers at once."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx

from mgl.llm.base import Message
from mgl.llm.client import Client
from mgl.memories.base import SilentObserver
from mgl.model import ModelChoice, defer
from mgl.store import Store
from tests.cli.server import serving

CALLS = 20
ROUNDS = 5
PROMPT = "a block of a story " * 1500


async def seconds_a_call(call: Callable[[str], Awaitable[object]], label: str) -> float:
    """The mean of the best round: other work on the machine only ever adds to a round."""
    rounds = []
    for number in range(ROUNDS):
        began = time.perf_counter()
        for index in range(CALLS):
            await call(f"{label} {number} {index} {PROMPT}")
        rounds.append((time.perf_counter() - began) / CALLS)
    return min(rounds)


async def test_a_call_costs_less_than_5_ms_more_than_its_http_request(tmp_path: Path) -> None:
    with serving() as server, Store.open(tmp_path / "mgl.sqlite") as store:
        choice = ModelChoice("qwen2.5-7b-instruct", base_url=server.url)
        profile = choice.load_profile(tmp_path)
        engine = defer(choice, profile, tmp_path, store, SilentObserver(), context_tokens=32_768)
        client = Client(engine, store.call_log("m"))
        async with httpx.AsyncClient() as http:

            async def bare(prompt: str) -> None:
                body = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
                reply = await http.post(f"{server.url}/chat/completions", json=body)
                json.loads(reply.content)

            async def ours(prompt: str) -> None:
                await client.complete([Message("user", prompt)], stage="build")

            await ours("warm")
            plain = await seconds_a_call(bare, "bare")
            through_mgl = await seconds_a_call(ours, "ours")
        await client.aclose()
        assert len(store.calls("m")) == ROUNDS * CALLS + 1
    assert through_mgl - plain < 0.005
