#!/usr/bin/env python3
"""Measure what mgl itself costs, with engines that answer at once. Says nothing about models.

    python scripts/bench/overhead.py call [--count 500]    one structured call after another
    python scripts/bench/overhead.py run  [--count 10000]  items of a benchmark, and a replay

``call`` times a call through mgl (schema, key, call log in SQLite, request, validation, row) and
the same HTTP request without mgl; the difference of the medians is what mgl adds. ``run`` asks
``turns`` made-up questions in LoCoMo's form, judges each answer, and then replays and verifies the
run.

Exit code 1: a call costs more than 5 ms, or the replay takes more than 6 ms of the processor an
item.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import httpx
from pydantic import BaseModel, Field

from mgl.evaluation.runs.lifecycle import replay_run, start_run, verify_run
from mgl.evaluation.runs.manifest import Arguments
from mgl.evaluation.runs.plan import plan_run, reopen_plan
from mgl.evaluation.runs.runner import Execution
from mgl.lab.engines import open_engine
from mgl.lab.model import OwnModels
from mgl.lab.workplace import Workplace
from mgl.llm.base import Message
from mgl.llm.capabilities import ServerEndpoint
from mgl.llm.client import Client
from mgl.llm.engines.deferred import DeferredEngine
from mgl.llm.engines.recorded import ModelFacts
from mgl.llm.fakes import SchemaEngine
from mgl.models.profiles import load_profile
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store

Figures = dict[str, Any]


# One call

PROFILE, WARM_UP = "qwen2.5-7b-instruct", 20
PROMPT = "Ann met Bo at the harbour, and they spoke of the garden. " * 150


class Note(BaseModel):
    """A reply like those of a build."""

    kind: Literal["entity", "event", "claim"]
    source: Annotated[str, Field(max_length=160)]
    says: Annotated[str, Field(max_length=160)]


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer every request of one connection at once, as an OpenAI-compatible server does."""
    model = load_profile(PROFILE).weights.hub.repo
    note = Note(kind="event", source="Ann met Bo", says="Ann and Bo met at the harbour.")
    message = {"role": "assistant", "content": note.model_dump_json()}
    replies: dict[bytes, Any] = {
        b"/v1/models": {"data": [{"id": model, "max_model_len": 32768}]},
        b"/version": {"version": "0.12.0"},
    }
    chat = {
        "choices": [{"message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 2000, "completion_tokens": 40},
    }
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = re.search(rb"content-length: *(\d+)", head.lower())
            await reader.readexactly(int(length[1]) if length else 0)
            body = json.dumps(replies.get(head.split(b" ")[1], chat)).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
    except asyncio.IncompleteReadError:
        writer.close()


async def time_calls(count: int, call: Callable[[int], Awaitable[object]]) -> list[float]:
    """Milliseconds of each call after a warm-up."""
    taken = []
    for number in range(count + WARM_UP):
        start = time.perf_counter()
        await call(number)
        taken.append((time.perf_counter() - start) * 1000)
    return taken[WARM_UP:]


async def measure_call(count: int, folder: Path) -> Figures:
    connections: list[asyncio.Task[None]] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    engine = await open_engine(load_profile(PROFILE), ServerEndpoint(url))
    with Store.open(folder / "mgl.sqlite") as store:
        client = Client(engine, store.call_log())
        async with httpx.AsyncClient() as http:

            async def bare(number: int) -> None:
                messages = [{"role": "user", "content": f"{number} {PROMPT}"}]
                reply = await http.post(f"{url}/chat/completions", json={"messages": messages})
                reply.json()

            async def through_mgl(number: int) -> None:
                await client.complete([Message("user", f"{number} {PROMPT}")], Note, stage="build")

            without, through = await time_calls(count, bare), await time_calls(count, through_mgl)
        await client.aclose()
    await asyncio.gather(*connections)
    server.close()
    http_ms, mgl_ms = statistics.median(without), statistics.median(through)
    return {
        "http_ms": http_ms,
        "mgl_ms": mgl_ms,
        "overhead_p50_ms": mgl_ms - http_ms,
        "overhead_p95_ms": statistics.quantiles(through, n=20)[18] - http_ms,
        "failed": mgl_ms - http_ms > 5,
    }


# A run over recorded calls

ITEMS_A_SOURCE, TURNS_A_SOURCE, NAMES = 1000, 600, 2000
FACTS = ModelFacts(
    profile="instant",
    model_id="fake",
    engine="openai",
    context_tokens=32_768,
    native_tools=False,
    concurrency=64,
    preset="paper",
    weights_sha256=None,
    sampling={},
    embedder="words",
    reranker="words",
)


class InstantPlace(Workplace):
    """A workplace whose model answers at once."""

    facts = FACTS


def write_talks(path: Path, count: int) -> None:
    """Write conversations of people who met each other, in LoCoMo's form, with questions."""
    draw, talks = random.Random(0), []
    for source, start in enumerate(range(0, count, ITEMS_A_SOURCE)):
        met = [(draw.randrange(NAMES), draw.randrange(NAMES)) for _ in range(TURNS_A_SOURCE)]
        turns = [
            {"speaker": "Ann", "dia_id": f"D1:{n}", "text": f"Name{one} met Name{two}, day {n}."}
            for n, (one, two) in enumerate(met, start=1)
        ]
        asked = []
        for number in range(min(ITEMS_A_SOURCE, count - start)):
            place = draw.randrange(TURNS_A_SOURCE)
            one, two = met[place]
            question = f"Whom did Name{one} meet on day {place + 1}? ({number})"
            gold, evidence = f"Name{two}", [f"D1:{place + 1}"]
            asked.append(
                {"question": question, "answer": gold, "category": 4, "evidence": evidence}
            )
        talk = {"session_1": turns, "session_1_date_time": "1:56 pm on 8 May, 2023"}
        talks.append({"sample_id": f"talk-{source}", "conversation": talk, "qa": asked})
    path.write_text(json.dumps(talks))


def measure_run(count: int, folder: Path) -> Figures:
    write_talks(folder / "locomo10.json", count)
    arguments = Arguments(
        benchmark="locomo",
        data=folder / "locomo10.json",
        memories=("turns",),
        models=("instant",),
        judges=("locomo=instant",),
    )
    tools = OwnModels(embedder=WordEmbedder(256), reranker=WordReranker())

    async def start() -> SchemaEngine:
        return SchemaEngine(model_id=FACTS.model_id, context_tokens=FACTS.context_tokens)

    with Store.open(folder / "mgl.sqlite") as store:
        engine = DeferredEngine(  # which keeps token counts, as an engine of a home does
            start,
            store,
            model_id=FACTS.model_id,
            context_tokens=FACTS.context_tokens,
            native_tools=FACTS.native_tools,
            concurrency=FACTS.concurrency,
        )

        @contextmanager
        def open_place(_profile: str) -> Iterator[Workplace]:
            own = replace(tools, engine=engine)
            with InstantPlace(folder, store, own, SilentObserver()) as place:
                yield place

        @contextmanager
        def open_recorded(_profile: str) -> Iterator[Workplace]:
            with Workplace(folder, store, tools, SilentObserver(), recorded=FACTS) as place:
                yield place

        marks = [(time.perf_counter(), time.process_time())]
        out = folder / "run"
        manifest = start_run(
            plan_run(arguments, open_place), out, Execution(open_place, SilentObserver(), 64)
        )
        marks.append((time.perf_counter(), time.process_time()))
        plan = reopen_plan(manifest, open_recorded)
        found = replay_run(plan, out, Execution(open_recorded, SilentObserver(), 64))
        marks.append((time.perf_counter(), time.process_time()))
        differing = verify_run(out)
        marks.append((time.perf_counter(), time.process_time()))
    figures: Figures = {"items": len(plan.items)}
    for name, (before, after) in zip(
        ("run", "replay", "verify"), itertools.pairwise(marks), strict=True
    ):
        figures[f"{name}_s"] = after[0] - before[0]
        figures[f"{name}_cpu_s"] = after[1] - before[1]
    figures["differing"] = len(found.differing) + len(differing)
    slow = figures["replay_cpu_s"] > 0.006 * count
    return {**figures, "failed": slow or figures["differing"] > 0}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=("call", "run"))
    parser.add_argument("--count", type=int, help="calls or items")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.what == "call":
            figures = asyncio.run(measure_call(options.count or 500, Path(folder)))
        else:
            figures = measure_run(options.count or 10_000, Path(folder))
    print(json.dumps(figures, indent=2))
    return int(figures["failed"])


if __name__ == "__main__":
    sys.exit(main())
