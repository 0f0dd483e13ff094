"""Many memories built side by side in one process, in a store of their own, and timed.

    built = await build_all(engine, kind, config, [(document, question)], concurrency=4)
    print(built.seconds, built.outcomes)

Every (document, question) is a memory. All share one engine and its slots; each has its client
and its log, as a run has. The store is a new one and gone afterwards, so that nothing is replayed.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from mgl.llm.base import Engine
from mgl.llm.client import Client, Policy
from mgl.llm.engines.deferred import DeferredEngine
from mgl.memories.base import MemoryKind, Tools
from mgl.observer import SILENT
from mgl.store import Store
from mgl.types import Document, Question

__all__ = ["Built", "Work", "build_all"]

Work = tuple[Document, Question]
TIMEOUT_S = 1800.0


@dataclass(frozen=True, slots=True)
class Built:
    """``seconds`` from the first memory's start to the last one's end, ``cpu_seconds`` of this
    process meanwhile; how many calls ended how, and edits too."""

    seconds: float
    cpu_seconds: float
    memories: int
    chunks: int
    outcomes: Mapping[str, int]
    edits: Mapping[str, int]

    @property
    def repeated(self) -> int:
        """Calls that gave no reply that could be used, and were made again or given up."""
        return sum(calls for outcome, calls in self.outcomes.items() if outcome != "ok")


async def build_all(
    engine: Engine,
    kind: MemoryKind,
    config: BaseModel,
    works: Sequence[Work],
    *,
    concurrency: int | None,
) -> Built:
    """Build a memory for each work, at most ``concurrency`` calls at once (None: adaptive)."""

    async def start() -> Engine:
        return engine

    with (
        tempfile.TemporaryDirectory(prefix="mgl-bench-") as folder,
        Store.open(Path(folder) / "mgl.sqlite") as store,
    ):
        deferred = DeferredEngine(
            start,
            store,
            model_id=engine.model_id,
            context_tokens=engine.context_tokens,
            native_tools=False,
            concurrency=engine.concurrency,
        )
        policy = Policy(timeout_s=TIMEOUT_S, concurrency=concurrency)
        shared = Client(deferred, store.call_log(), policy)

        async def build(document: Document, question: Question) -> str:
            log = store.call_log()
            tools = Tools(shared.beside(log), store, SILENT, time.time)
            memory = kind(tools, document, [question], config)
            log.attach(memory.id)
            await memory.build()
            return memory.id

        began, cpu = time.perf_counter(), time.process_time()
        built = await asyncio.gather(*(build(*work) for work in works))
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        return Built(
            seconds,
            cpu,
            len(built),
            sum(len(store.chunks_done(one)) for one in built),
            dict(Counter(call.outcome for one in built for call in store.calls(one))),
            dict(Counter(edit.outcome for one in built for edit in store.edits(one))),
        )
