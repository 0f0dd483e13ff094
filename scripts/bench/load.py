#!/usr/bin/env python3
"""`mgl up` under load, killed and started again: what it loses, what it takes, what it holds.

    scripts/bench/load.py --seconds 600 --clients 64 --kills 8
    scripts/bench/load.py --seconds 20 --clients 1 --pace 0 --turns 20 --only search

Each client has a conversation of its own, which begins with ``--turns`` turns (1,000 at most), and
one that it shares with seven others, and does something every ``--pace`` seconds or so; 0 does the
next as soon as the last is answered. The mix ``whole`` has all that programs do: append by REST,
chat with all, some or none of the history, with tools, with images, as streams that are left in the
middle, again, and edited; ask, search, export and forget. ``plain`` is 6 of 10 append, 2 search, 1
asks, 1 chats; ``--only`` makes all of one kind.

The server is killed (SIGKILL) at random moments and starts again over its home; clients send again
what was not answered. In the end every message that was acknowledged has to be there once and in
order, and none that was deleted: in no answer, and, at each kill and in the end, in no file of the
home. Exit code 1 otherwise.

Prints requests by kind, kills, what was acknowledged, problems, the times that clients wait, the
server's own share of them (from a request's headers read to its answer's first byte handed over,
measured in the server: neither the client's work, which the same cores do, nor the time until the
server reads), its processor time and its resident memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil
from ledger import Book
from served import WORD, ServerProcess
from talkers import MIXES, Client, Record

CLIENTS_A_SHARED = 8
_WORD_BYTES = re.compile(WORD.pattern.encode())


class Load:
    """The clients, their conversations, and the server that is killed meanwhile."""

    def __init__(self, server: ServerProcess, home: Path, options: argparse.Namespace) -> None:
        self._server = server
        self._home = home
        self._options = options
        self._draw = random.Random(f"{options.seed} load")
        self.record = Record()
        self.resident: list[float] = []
        self.restarts: list[float] = []
        self.cpu = 0.0
        self._known_cpu = 0.0
        count = options.clients
        shared = [Book(f"shared-{n}") for n in range(-(-count // CLIENTS_A_SHARED))]
        self.books = [*shared, *(Book(f"own-{number}") for number in range(count))]

    async def run(self) -> None:
        options, record = self._options, self.record
        async with httpx.AsyncClient(
            base_url=self._server.root,
            headers=self._server.headers,
            timeout=60,
            trust_env=False,
            limits=httpx.Limits(max_connections=None),
        ) as http:
            shared = self.books[: -options.clients]
            self.clients = [
                Client(number, options.seed, http, record, own, shared[number % len(shared)])
                for number, own in enumerate(self.books[-options.clients :])
            ]
            record.up.set()
            await asyncio.gather(*(each.append(each.own, options.turns) for each in self.clients))
            for book in shared:  # which others ask before one of them has said something
                await self.clients[self.books.index(book)].append(book, 1)
            record.clear()
            self._measure()
            self.cpu = 0.0
            began = time.monotonic()

            def progress() -> float:
                if options.requests:
                    return float(record.answered / options.requests)
                return float((time.monotonic() - began) / options.seconds)

            watching = asyncio.create_task(self._watch())
            async with asyncio.TaskGroup() as group:
                group.create_task(self._kill(progress))
                for client in self.clients:
                    group.create_task(self._talk(client, progress))
            watching.cancel()
            self._measure()
            await self._check(http)
        self._server.stop()
        self._search_files()

    async def _talk(self, client: Client, progress: Callable[[], float]) -> None:
        options = self._options
        mix = {options.only: 1} if options.only else MIXES[options.mix]
        draw = random.Random(f"{options.seed} {client.name} talks")
        await asyncio.sleep(draw.uniform(0, options.pace))
        while progress() < 1:
            await client.do(draw.choices([*mix], [*mix.values()])[0])
            await asyncio.sleep(draw.uniform(0.5, 1.5) * options.pace)

    async def _kill(self, progress: Callable[[], float]) -> None:
        for moment in sorted(self._draw.uniform(0.1, 0.9) for _ in range(self._options.kills)):
            while progress() < moment:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await self._restart()

    async def _restart(self) -> None:
        """Kill the server, see what it leaves, and start it again."""
        self._measure()
        self.record.up.clear()
        self.record.starts += 1
        self._server.kill()
        await asyncio.to_thread(self._search_files)
        self.restarts.append(await asyncio.to_thread(self._server.start))
        self._known_cpu = 0.0
        self.record.up.set()

    def _search_files(self) -> None:
        """Look for what was deleted in the bytes of all files of the home."""
        forgotten = {word: book.name for book in self.books for word in book.forgotten}
        found: dict[str, set[str]] = {}
        for path in self._home.rglob("*"):
            if path.is_file():
                words = {each.decode() for each in _WORD_BYTES.findall(path.read_bytes())}
                for word in words & forgotten.keys():
                    found.setdefault(word, set()).add(path.name)
        for word, files in found.items():
            about = f"{word} of {forgotten[word]}, in {', '.join(sorted(files))}"
            self.record.blame("left in a file", about)

    async def _check(self, http: httpx.AsyncClient) -> None:
        """Compare each conversation with what was acknowledged."""
        for book in self.books:
            exported = await http.get(f"/api/memories/{book.name}/export")
            for problem in book.check(exported.raise_for_status().json()):
                self.record.blame(*problem)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(max(1.0, self._options.seconds / 20))
            if self.record.up.is_set():
                self._measure()

    def _measure(self) -> None:
        """Note the server's memory, and the processor time since it was noted last."""
        times = self._server.process.cpu_times()
        self.cpu += times.user + times.system - self._known_cpu
        self._known_cpu = times.user + times.system
        self.resident.append(round(self._server.process.memory_info().rss / 1e6, 1))

    def report(self) -> dict[str, Any]:
        options, record = self._options, self.record
        said = [each for book in self.books for each in book]
        problems = Counter(kind for kind, _ in record.problems)
        names = ("clients", "seconds", "requests", "pace", "turns", "mix", "only", "seed", "kills")
        return {
            **{name: getattr(options, name) for name in names},
            "load_average": psutil.getloadavg()[0],
            "answered": {kind: len(each) for kind, each in sorted(record.seconds.items())},
            "unanswered": dict(record.unanswered),
            "restart_s": [round(each, 1) for each in self.restarts],
            "acknowledged": {
                "messages": sum(bool(each.id) for each in said),
                "replies": sum(each.reply is not None for each in said),
                "deleted": sum(len(book.forgotten) for book in self.books),
            },
            "notes": dict(record.notes),
            "problems": dict(problems),
            "first_problems": [*_choose(record.problems)],
            "waited": describe_kinds(record.seconds),
            "servers_share": describe_kinds(record.server_seconds),
            "cpu_ms_a_request": round(1000 * self.cpu / max(1, record.answered), 2),
            "resident_mb": self.resident,
        }


def _choose(problems: Mapping[tuple[str, str], None], most: int = 3) -> list[str]:
    """The first problems of each kind."""
    seen: Counter[str] = Counter()
    chosen = []
    for kind, about in problems:
        seen[kind] += 1
        if seen[kind] <= most:
            chosen.append(f"{kind}: {about}")
    return chosen


def describe(seconds: list[float]) -> dict[str, float | int]:
    p50, p95, p99 = np.percentile(np.array(seconds) * 1000, [50, 95, 99])
    return {
        "n": len(seconds),
        **{f"p{n}_ms": round(float(v), 1) for n, v in ((50, p50), (95, p95), (99, p99))},
    }


def describe_kinds(seconds: Mapping[str, list[float]]) -> dict[str, Any]:
    every = [each for times in seconds.values() for each in times]
    kinds = sorted(seconds.items()) if len(seconds) > 1 else ()
    return {"all": describe(every), **{what: describe(times) for what, times in kinds}}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, help="end after so many answers, not by the clock")
    parser.add_argument("--kills", type=int, default=0, help="how often the server is killed")
    parser.add_argument("--pace", type=float, default=1.0, help="seconds between two requests")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--mix", choices=MIXES, default="whole")
    parser.add_argument("--only", choices=MIXES["whole"], help="requests of one kind alone")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as home:
        with ServerProcess(Path(home)) as server:
            load = Load(server, Path(home), options)
            asyncio.run(load.run())
        report = load.report()
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return int(bool(report["problems"]))


if __name__ == "__main__":
    sys.exit(main())
