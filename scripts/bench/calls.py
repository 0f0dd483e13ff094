#!/usr/bin/env python3
"""Calls a second of one process's loop, with an engine that answers at once, beside a bare client.

    python scripts/bench/calls.py [--count 1000] [--at-once 16,64,256]

The server is a process of its own. For each number of calls at once, three ways of making them:
``http``, a bare client (httpx with one pool); ``http_many_pools``, the same with mgl's connections;
``mgl``, whole calls (schema, key, call log in SQLite, request, validation, row). Read the time of
this process's processor: by the clock, a busy machine counts.

Exit code 1: mgl makes fewer than 0.8 of the bare client's calls for the same time of processor.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import httpx
from overhead import PROFILE, PROMPT, Figures, Note, serve

from mgl.lab.engines import open_engine
from mgl.llm.base import Message
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.client import Client, Policy
from mgl.models.profiles import load_profile
from mgl.openai.servers import Connections
from mgl.store import Store

LEVELS: Final = (16, 64, 256)
LEAST: Final = 0.8


@contextmanager
def serving() -> Iterator[str]:
    """Start the server; gives its URL."""
    command = [sys.executable, __file__, "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


async def serve_forever() -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


async def load(numbers: range, at_once: int, call: Callable[[int], Awaitable[object]]) -> Figures:
    """Make calls, so many at once; milliseconds of this process's processor a call."""
    queue, count = iter(numbers), len(numbers)

    async def work() -> None:
        for number in queue:
            await call(number)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    return {"cpu_ms": 1000 * cpu / count, "calls_a_cpu_s": count / cpu, "calls_s": count / seconds}


async def measure_level(count: int, at_once: int, url: str, store: Store) -> Figures:
    engine = await open_engine(load_profile(PROFILE), "openai", endpoint=ServerEndpoint(url))
    client = Client(engine, store.call_log(), Policy(concurrency=at_once))
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)

    async def bare(number: int, *, http: httpx.AsyncClient) -> None:
        messages = [{"role": "user", "content": f"{number} {PROMPT}"}]
        reply = await http.post(f"{url}/chat/completions", json={"messages": messages})
        reply.json()

    async def through_mgl(number: int) -> None:
        await client.complete([Message("user", f"{number} {PROMPT}")], Note, stage="build")

    figures: Figures = {}
    async with (
        httpx.AsyncClient(limits=limits, timeout=None) as one_pool,
        httpx.AsyncClient(transport=Connections(), timeout=None) as many_pools,
    ):
        ways: dict[str, Callable[[int], Awaitable[object]]] = {
            "http": partial(bare, http=one_pool),
            "http_many_pools": partial(bare, http=many_pools),
            "mgl": through_mgl,
        }
        for name, call in ways.items():
            await load(range(-at_once, 0), at_once, call)  # opens the connections
            figures[name] = await load(range(count), at_once, call)
    await client.aclose()
    for name in ("http", "http_many_pools"):
        figures[f"ratio_to_{name}"] = figures[name]["cpu_ms"] / figures["mgl"]["cpu_ms"]
    return figures


async def measure(count: int, folder: Path, levels: Sequence[int] = LEVELS) -> Figures:
    figures: Figures = {}
    for at_once in levels:
        with serving() as url, Store.open(folder / f"{at_once}.sqlite") as store:
            figures[f"{at_once}"] = await measure_level(count, at_once, url, store)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="calls of each kind")
    parser.add_argument("--at-once", default=",".join(map(str, LEVELS)), help="calls in flight")
    parser.add_argument("--serve", action="store_true", help="be the server")
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve_forever())
    levels = [int(level) for level in options.at_once.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        figures = asyncio.run(measure(options.count, Path(folder), levels))
    print(json.dumps(figures, indent=2))
    return int(any(one["ratio_to_http"] < LEAST for one in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
