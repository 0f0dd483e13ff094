#!/usr/bin/env python3
"""What `mgl up` itself takes of a request, under load, and whether its memory stays flat.

    scripts/bench/load.py --seconds 60 --clients 64 --pace 1
    scripts/bench/load.py --seconds 20 --clients 1 --pace 0 --turns 20 --only search

A server in a process of its own, over an engine that answers at once and an embedder of hashed
words, so that the time is mgl's: its door, its store, its retrieval. Each client has a conversation
of its own, which begins with ``--turns`` turns (1,000 at most), and makes a request every
``--pace`` seconds or so: 6 of 10 append, 2 search, 1 asks, 1 chats, or all are of one kind
(``--only``); 0 makes the next as soon as the last is answered.

Prints errors, the times that clients wait, the server's own share of them (from a request's headers
read to its answer's first byte handed over, measured in the server: neither the client's work,
which the same cores do, nor the time until the server reads), the server's processor time and its
resident memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np
import psutil

from mgl.api.keys import OWNER, Keys
from mgl.api.relay import Relay
from mgl.api.server import Server
from mgl.lab import Lab
from mgl.lab.workplace import Workplace
from mgl.llm.fakes import SchemaEngine
from mgl.peers.listening import find_loop
from mgl.retrieval.fakes import WordEmbedder, WordReranker

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEY = "load"
WORDS = "amber anchor basin candle cedar copper delta ember fern garden harbour island".split()
MIX = {"append": 6, "search": 2, "ask": 1, "chat": 1}


async def serve(home: Path) -> None:
    """Serve until this process is stopped; print the port first."""
    Workplace.preset = "small"  # type: ignore[assignment, method-assign]

    def open_lab(folder: Path) -> Lab:
        return Lab.open(
            engine=SchemaEngine(),
            embedder=WordEmbedder(),
            reranker=WordReranker(),
            home=home,
            memories=folder,
            observer=Relay(),
        )

    async with Timed(home, Keys.open(home, KEY), open_lab, rate=0) as server:
        await server.open_tenant(OWNER)
        print(server.root, flush=True)
        await server.wait()


class Timed(Server):
    """A server that says in each answer how long it took, in milliseconds."""

    def _make_app(self) -> Starlette:
        app = super()._make_app()
        app.add_middleware(Stopwatch)
        return app


class Stopwatch:
    """Sets ``Server-Timing`` when the answer begins, which here is sent at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = time.perf_counter()

        async def time_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                took = f"all;dur={1000 * (time.perf_counter() - start):.3f}"
                message["headers"].append((b"server-timing", took.encode()))
            await send(message)

        await self._app(scope, receive, time_and_send)


class Load:
    """The clients, and what they measured."""

    def __init__(self, root: str, seed: int, turns: int, mix: dict[str, int]) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.server_seconds: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []
        self._http = httpx.AsyncClient(
            base_url=root,
            headers={"Authorization": f"Bearer {KEY}"},
            timeout=60,
            limits=httpx.Limits(max_connections=None),
        )
        self._seed = seed
        self._turns = turns
        self._mix = mix

    async def begin(self, clients: int) -> None:
        """Begin each client's conversation, and make each kind of request once, unmeasured."""

        async def begin(number: int) -> None:
            draw = random.Random(f"{self._seed} {number} begins")
            said = {"turns": [{"text": _write_text(draw)} for _ in range(self._turns)]}
            answer = await self._http.post(f"/api/conversations/client-{number}/turns", json=said)
            answer.raise_for_status()

        await asyncio.gather(*(begin(number) for number in range(clients)))
        for what in MIX:
            await self._do(what, "client-0", random.Random(self._seed))
        self.seconds.clear()
        self.server_seconds.clear()

    async def run(self, clients: int, seconds: float, pace: float) -> None:
        end = time.monotonic() + seconds
        await asyncio.gather(*(self._talk(number, end, pace) for number in range(clients)))
        await self._http.aclose()

    async def _talk(self, number: int, end: float, pace: float) -> None:
        draw, name = random.Random(f"{self._seed} {number}"), f"client-{number}"
        await asyncio.sleep(draw.uniform(0, pace))
        while time.monotonic() < end:
            await asyncio.sleep(draw.uniform(0.5, 1.5) * pace)
            await self._do(draw.choices([*self._mix], [*self._mix.values()])[0], name, draw)

    async def _do(self, what: str, name: str, draw: random.Random) -> None:
        text = _write_text(draw)
        start = time.perf_counter()
        try:
            answer = await self._send(what, name, text)
        except httpx.HTTPError as error:
            self.errors.append(f"{what}: {type(error).__name__}")
            return
        self.seconds[what].append(time.perf_counter() - start)
        took = answer.headers["server-timing"].removeprefix("all;dur=")
        self.server_seconds[what].append(float(took) / 1000)
        if answer.status_code >= 400:
            self.errors.append(f"{what}: {answer.status_code} {answer.text[:200]}")

    async def _send(self, what: str, name: str, text: str) -> httpx.Response:
        if what == "append":
            said: dict[str, Any] = {"turns": [{"text": text}]}
            return await self._http.post(f"/api/conversations/{name}/turns", json=said)
        if what == "search":
            return await self._http.get(f"/api/memories/{name}/search", params={"q": text})
        if what == "ask":
            asked = {"question": f"Who said {text}?"}
            return await self._http.post(f"/api/memories/{name}/ask", json=asked)
        chat = {
            "model": "mgl/gam",
            "user": name,
            "messages": [{"role": "user", "content": text}],
        }
        return await self._http.post("/v1/chat/completions", json=chat)


def _write_text(draw: random.Random) -> str:
    return f"{' '.join(draw.choices(WORDS, k=8))} {draw.randrange(10**6)}"


def describe(seconds: list[float]) -> dict[str, float | int]:
    p50, p95, p99 = np.percentile(np.array(seconds) * 1000, [50, 95, 99])
    return {
        "n": len(seconds),
        **{f"p{n}_ms": round(float(v), 1) for n, v in ((50, p50), (95, p95), (99, p99))},
    }


def describe_kinds(seconds: dict[str, list[float]]) -> dict[str, Any]:
    every = [each for times in seconds.values() for each in times]
    kinds = sorted(seconds.items()) if len(seconds) > 1 else ()
    return {"all": describe(every), **{what: describe(times) for what, times in kinds}}


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", home], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            mix = {arguments.only: 1} if arguments.only else MIX
            load = Load(server.stdout.readline().strip(), arguments.seed, arguments.turns, mix)
            process = psutil.Process(server.pid)
            first = process.memory_info().rss
            seen: list[int] = []

            async def run() -> Any:
                await load.begin(arguments.clients)
                before = process.cpu_times()

                async def watch() -> None:
                    while True:
                        await asyncio.sleep(max(1.0, arguments.seconds / 10))
                        seen.append(process.memory_info().rss)

                watching = asyncio.create_task(watch())
                await load.run(arguments.clients, arguments.seconds, arguments.pace)
                watching.cancel()
                return before

            before = asyncio.run(run())
            seen.append(process.memory_info().rss)
            cpu = process.cpu_times()
        finally:
            server.terminate()
            server.wait()
    count = sum(map(len, load.seconds.values()))
    return {
        "clients": arguments.clients,
        "seconds": arguments.seconds,
        "pace": arguments.pace,
        "turns": arguments.turns,
        "load_average": psutil.getloadavg()[0],
        "errors": len(load.errors),
        "first_errors": load.errors[:3],
        "waited": describe_kinds(load.seconds),
        "servers_share": describe_kinds(load.server_seconds),
        "cpu_ms_a_request": round(
            1000 * (cpu.user + cpu.system - before.user - before.system) / count, 2
        ),
        "resident_mb": [round(each / 1e6, 1) for each in (first, *seen)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pace", type=float, default=1.0)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--only", choices=MIX)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        with asyncio.Runner(loop_factory=find_loop()) as runner:
            runner.run(serve(arguments.serve))
    else:
        print(json.dumps(measure(arguments), indent=2))


if __name__ == "__main__":
    main()
