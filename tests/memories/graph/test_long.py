"""Many chunks: how many are under way, what stays in memory, and what a killed process leaves."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mgl.llm.base import Completion, Request
from mgl.store import Store
from tests.memories.graph.conftest import NOTHING, Answering, Open

LONG = " ".join(f"On day {n} Ann met Bo again, and it was {n} degrees." for n in range(700))

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from mgl.memories.graph import DocumentGraph, GraphConfig
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.observer import SilentObserver
from mgl.store import Store
from mgl.types import Document

class Dying(SchemaEngine):
    calls = 0

    async def generate(self, request):
        self.calls += 1
        if self.calls == 40:
            os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(0.001)
        return await super().generate(request)

store = Store.open(Path(sys.argv[1]))
tools = Tools(Client(Dying(), store.call_log()), store, SilentObserver(), lambda: 0.0)
config = GraphConfig(chunk_tokens=24, overlap_tokens=6, in_flight=8)
document = Document.from_text("tale.txt", Path(sys.argv[2]).read_text())
asyncio.run(DocumentGraph(tools, document, (), config).build())
"""


class Watched(Answering):
    """How many requests are under way at once, at most."""

    now = most = 0

    async def generate(self, request: Request) -> Completion:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):
            await asyncio.sleep(0)
        self.now -= 1
        return await super().generate(request)


@pytest.mark.parametrize("at_once", [1, 5])
def test_so_many_chunks_are_read_at_once(graph_of: Open, at_once: int) -> None:
    engine = Watched(lambda _: NOTHING, concurrency=64)
    graph = graph_of(LONG[:4000], engine, in_flight=at_once)
    asyncio.run(graph.build())
    assert engine.most == at_once
    assert len(engine.requests) == len(graph.chunks())


def test_a_killed_process_leaves_whole_chunks_and_no_call_is_paid_twice(
    graph_of: Open, store: Store, tmp_path: Path
) -> None:
    book = tmp_path / "tale.txt"
    book.write_text(LONG[:6000])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(store.path), str(book)], check=False, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    (record,) = store.memories()
    done = store.chunks_done(record.id)
    assert 0 < len(done) < 40
    for number in done:
        assert next(r.op for r in store.edits(record.id) if r.chunk == number) == "chunk"

    from mgl.llm.fakes import SchemaEngine

    graph = graph_of(LONG[:6000], SchemaEngine(), in_flight=8)
    assert graph.id == record.id
    asyncio.run(graph.build())
    assert store.chunks_done(record.id) == frozenset(range(record.chunks))
    with closing(sqlite3.connect(store.path)) as connection:
        keys = [
            key
            for key, reply in connection.execute("SELECT key, reply FROM llm_calls")
            if json.loads(reply) is not None
        ]
    assert len(keys) == len(set(keys))
