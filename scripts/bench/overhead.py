#!/usr/bin/env python3
"""Measure what mgl itself costs, with engines that answer at once. Says nothing about models.

    python scripts/bench/overhead.py call      [--count 500]    one structured call after another
    python scripts/bench/overhead.py graph     [--count 10000]  chunks read into an entity graph
    python scripts/bench/overhead.py hierarchy [--count 50000]  entities sorted into categories
    python scripts/bench/overhead.py run       [--count 10000]  items of a benchmark, and a replay

``call`` times a call through mgl (schema, key, call log in SQLite, request, validation, row) and
the same HTTP request without mgl; the difference of the medians is what mgl adds. ``graph`` reads
a synthetic document as a build does and gives milliseconds and memory by tenths of the chunks.
``hierarchy`` (Mnemis) does a tenth of the entities, then all of them. ``run`` asks ``turns``
made-up questions in LoCoMo's form, judges each answer, and then replays and verifies the run.

Exit code 1: a call costs more than 5 ms; the last tenth of the chunks takes more than twice as
long as the first, or a chunk leaves more than 4 KiB in memory; an entity takes more than twice as
long among all as among a tenth; the replay takes more than 6 ms of the processor an item.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import json
import os
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
import psutil
from pydantic import BaseModel, Field

from mgl.evaluation.runs.lifecycle import replay_run, start_run, verify_run
from mgl.evaluation.runs.manifest import Arguments
from mgl.evaluation.runs.plan import plan_run, reopen_plan
from mgl.evaluation.runs.runner import Execution
from mgl.lab.model import ModelChoice
from mgl.lab.workplace import OwnModels, Workplace
from mgl.llm.base import Completion, Message, Request, TokenUsage
from mgl.llm.capabilities import Endpoint
from mgl.llm.client import Client
from mgl.llm.engines import open_engine
from mgl.llm.engines.deferred import DeferredEngine
from mgl.llm.engines.recorded import ModelFacts
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.memories.graph import DocumentGraph
from mgl.memories.log import Draft
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import VOCABULARY
from mgl.memories.mnemis.grouping import BY_MODEL, Grouping
from mgl.memories.mnemis.hierarchy import HierarchyBuilder
from mgl.memories.mnemis.likeness import BY_LIKENESS
from mgl.memories.mnemis.selection import select
from mgl.memories.mnemis.state import Entity, Episode, Mention, State
from mgl.memories.table import Table
from mgl.models.profiles import load_profile
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Document, Span

Figures = dict[str, Any]
MIB = 2**20


def resident_mib() -> float:
    gc.collect()
    rss: int = psutil.Process(os.getpid()).memory_info().rss
    return rss / MIB


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
    engine = await open_engine(load_profile(PROFILE), "openai", endpoint=Endpoint(url))
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


# A document read into an entity graph

NAMES, TENTHS = 2000, 10
MET = re.compile(r"\[(\d+)\] (Name\d+) met (Name\d+)")


def synthetic_text(chunks: int) -> str:
    """Sentences for about ``chunks`` windows of 200 tokens that overlap by 50."""
    draw = random.Random(0)
    sentence = "Name{} met Name{} at the harbour, and they spoke of the garden, the sea and day {}."
    return " ".join(
        sentence.format(draw.randrange(NAMES), draw.randrange(NAMES), number)
        for number in range(chunks * 150 // 19)
    )


class WhoMetWhom(SchemaEngine):
    """Extracts who met whom from a passage at once."""

    async def generate(self, request: Request) -> Completion:
        await asyncio.sleep(0)
        prompt = request.messages[-1].content
        if "The text:" not in prompt:
            return await super().generate(request)
        met = [(int(src), one, other) for src, one, other in MET.findall(prompt)]
        extracted = {
            "entities": [
                {"src": src, "name": one, "type": "person", "description": f"{one} met {other}."}
                for src, one, other in met[:10]
            ],
            "relations": [
                {"src": src, "source": one, "target": other, "description": "They met."}
                for src, one, other in met[:8]
            ],
        }
        return Completion(json.dumps(extracted), "stop", TokenUsage(500, 200))


class Marks(SilentObserver):
    """Notes time and memory at each tenth of the chunks."""

    def __init__(self) -> None:
        self.marks: list[tuple[int, float, float]] = []

    def progress(self, stage: str, done: int, total: int) -> None:
        if stage == "extract" and done * TENTHS // total >= len(self.marks):
            self.marks.append((done, time.perf_counter(), resident_mib()))


async def measure_graph(count: int, folder: Path) -> Figures:
    marks = Marks()
    document = Document.from_text("long.txt", synthetic_text(count))
    with Store.open(folder / "mgl.sqlite") as store:
        llm = Client(WhoMetWhom(concurrency=256), store.call_log())
        graph = DocumentGraph(Tools(llm, store, marks), document)
        began = time.perf_counter()
        await graph.build()
        built = time.perf_counter()
        state = graph.graph()
        folded = time.perf_counter()
        reopened = DocumentGraph(Tools(llm, store, SilentObserver()), document)
        await reopened.estimate()
        estimated = time.perf_counter()
    tenths = [
        {"ms_a_chunk": 1000 * (after[1] - before[1]) / (after[0] - before[0]), "mib": after[2]}
        for before, after in zip(marks.marks, marks.marks[1:], strict=False)
    ]
    read = marks.marks[-1][0]
    slower = tenths[-1]["ms_a_chunk"] / tenths[0]["ms_a_chunk"]
    kib_a_chunk = 1024 * (tenths[-1]["mib"] - tenths[0]["mib"]) / (read * 0.9)
    return {
        "chunks": read,
        "entities": len(state.entities),
        "relations": len(state.relations),
        "build_s": built - began,
        "fold_s": folded - built,
        "estimate_s": estimated - folded,
        "tenths": tenths,
        "slower": slower,
        "kib_a_chunk": kib_a_chunk,
        "failed": slower > 2 or kib_a_chunk > 4,
    }


# A hierarchy of categories

NODE = re.compile(r"(?m)^(\d+)\. Topic(\d+)")
GROUPED = re.compile(r"The nodes:\n- Topic(\d+)")
OFFERED = re.compile(r'(?m)^- name: "(Topic\d+[^"]*)", uuid: "(\w+)"')
LAYER = re.compile(r"You are currently at Layer (\d+)")


def synthetic_entities(count: int) -> State:
    """Entities without edges, about eight to a topic, which their names tell."""
    draw = random.Random(0)
    span = Span("synthetic", 0, 1)
    topics = max(1, count // 8)
    entities = [
        Entity(
            f"e{number}",
            (f"Topic{draw.randrange(topics)} thing {number}",),
            (Mention(0, span),),
            "A thing that was made up.",
            (f"kind {number % 50}", "made up"),
        )
        for number in range(1, count + 1)
    ]
    return State(
        Table({0: Episode(0, span)}),
        Table({one.id: one for one in entities}),
        counts=Table({"e": count}),
    )


class Topics(SchemaEngine):
    """Sorts a batch by topic, above layer 1 by tens of topics; selects the first node offered."""

    async def generate(self, request: Request) -> Completion:
        await asyncio.sleep(0)
        prompt = request.messages[-1].content
        if "INDEXED NAMES" in prompt:
            layer = int(LAYER.findall(prompt)[0])
            groups: dict[int, list[int]] = {}
            for index, topic in NODE.findall(prompt.partition("<EXISTING")[0]):
                groups.setdefault(int(topic) // (10 if layer > 1 else 1), []).append(int(index))
            reply: Any = [
                {"category": f"Topic{topic} of layer {layer}", "indexes": indexes}
                for topic, indexes in groups.items()
            ]
        elif "belong together" in prompt:
            (topic,) = GROUPED.findall(prompt)
            reply = {"category": f"Topic{topic} kind"}
        elif "Available Nodes" in prompt:
            name, uuid = OFFERED.findall(prompt)[0]
            reply = [{"name": name, "uuid": uuid, "get_all_children": False}]
        else:
            reply = {"summary": "Things that were made up.", "tags": ["made up", "things"]}
        return Completion(json.dumps(reply), "stop", TokenUsage(500, 200))


async def build_topics(count: int, how: Grouping, folder: Path) -> Figures:
    config = MnemisConfig()
    before, memory = synthetic_entities(count), resident_mib()
    with Store.open(folder / f"{count}.sqlite") as store:
        llm = Client(Topics(concurrency=64), store.call_log())
        began = time.perf_counter()
        tools = Tools(llm, store, SilentObserver(), WordEmbedder(256))
        draft = Draft(VOCABULARY, 0, before)
        stopped = await HierarchyBuilder(tools, config, how).grow(draft)
        rows, state = draft.rows, draft.state
        built = time.perf_counter()
        calls = {stage: usage.calls for stage, usage in llm.usage().items()}
        held = resident_mib()
        start = time.perf_counter()
        if VOCABULARY.replay(rows, before) != state:
            raise AssertionError("the log does not lead to the hierarchy")
        folded = time.perf_counter()
        found = await select(llm, state, "Which?", config)
        selected = time.perf_counter()
    return {
        "entities": count,
        "layers": [len(state.layer(layer)) for layer in range(state.top + 1)],
        "stopped": stopped,
        "calls": calls,
        "rows": len(rows),
        "build_s": built - began,
        "ms_an_entity": 1000 * (built - began) / count,
        "mib_more": held - memory,
        "fold_s": folded - start,
        "select_s": selected - folded,
        "offered": [layer.offered for layer in found.layers],
    }


async def measure_hierarchy(count: int, folder: Path, grouping: str) -> Figures:
    how = BY_LIKENESS if grouping == "likeness" else BY_MODEL
    runs = [await build_topics(size, how, folder) for size in (count // 10, count)]
    slower = runs[1]["ms_an_entity"] / runs[0]["ms_an_entity"]
    return {"runs": runs, "slower": slower, "failed": slower > 2}


# A run over recorded calls

ITEMS_A_SOURCE, TURNS_A_SOURCE = 1000, 600
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
            with InstantPlace(folder, store, ModelChoice(), SilentObserver(), own=own) as place:
                yield place

        @contextmanager
        def open_recorded(_profile: str) -> Iterator[Workplace]:
            choice, observer = ModelChoice(), SilentObserver()
            with Workplace(folder, store, choice, observer, recorded=FACTS, own=tools) as place:
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
    parser.add_argument("what", choices=("call", "graph", "hierarchy", "run"))
    parser.add_argument("--count", type=int, help="calls, chunks, entities or items")
    parser.add_argument("--grouping", choices=("model", "likeness"), default="model")
    options = parser.parse_args()
    usual = {"call": 500, "graph": 10_000, "hierarchy": 50_000, "run": 10_000}
    count = options.count or usual[options.what]
    with tempfile.TemporaryDirectory() as folder:
        if options.what == "call":
            figures = asyncio.run(measure_call(count, Path(folder)))
        elif options.what == "graph":
            figures = asyncio.run(measure_graph(count, Path(folder)))
        elif options.what == "run":
            figures = measure_run(count, Path(folder))
        else:
            figures = asyncio.run(measure_hierarchy(count, Path(folder), options.grouping))
    print(json.dumps(figures, indent=2))
    return int(figures["failed"])


if __name__ == "__main__":
    sys.exit(main())
