#!/usr/bin/env python3
"""Measure conversation memories as they grow: per append, per question, bytes on disk.

    python scripts/bench/scale.py [--memory gam mnemis turns] [--sizes 1000 10000 100000]

Synthetic turns (Zipf words, fifty names, sessions of 20) are appended one by one; at each size the
last 200 appends are reported, then the memory is reopened and asked. Replies come at once, so the
times are what mgl costs without a model. ``first`` is the first question
after opening, ``question`` the median of those that follow, ``append`` the median of the last
appends, ``p95`` their 95th percentile, ``mean`` the mean of the last thousand appends, and ``ask``
the median of five whole ``mgl ask`` processes: all in milliseconds of processor time, which a busy
machine changes little. The baseline ``turns`` has no log: its source is a file, read whole.
The default embedder counts words; ``--embedder NAME`` loads one, and leaves out ``ask``.

A memory that takes longer than ``--minutes`` is reported at the size that it reached.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

from ask_once import DIMS
from instant import InstantEngine

from mgl.llm.client import Client
from mgl.memories.base import Tools
from mgl.memories.options import choose_kind
from mgl.models import shipped
from mgl.observer import SILENT
from mgl.retrieval.base import Embedder
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.retrieval.opening import open_embedder
from mgl.store import Store
from mgl.types import Conversation, Question, Turn

CONFIG: dict[str, dict[str, Any]] = {
    "gam": {"preset": "small"},
    "mnemis": {"preset": "small", "routes": "system1"},
    "turns": {},
}
LAST, QUESTIONS, PROCESSES, SESSION = 200, 10, 5, 20
MANY = 1000
VOCABULARY = [f"word{number}" for number in range(5000)]
WEIGHTS = [1 / (rank + 3) for rank in range(len(VOCABULARY))]
NAMES = [f"Name{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(50)]


def synthetic_turns(seed: int = 0) -> Iterator[Turn]:
    draw, start, number = random.Random(seed), datetime(2020, 1, 1, 9), 0
    while True:
        words = draw.choices(VOCABULARY, WEIGHTS, k=draw.randint(5, 20))
        words.insert(draw.randrange(len(words)), draw.choice(NAMES))
        session = number // SESSION
        yield Turn(
            f"t{number}",
            ("Ann", "Bo")[number % 2],
            f"{' '.join(words).capitalize()}.",
            start + timedelta(days=session, minutes=number % SESSION),
            f"{session}",
        )
        number += 1


def open_memory(name: str, store: Store, source: Conversation, embedder: Embedder) -> Any:
    kind, config = choose_kind(name, CONFIG[name], lambda: "paper")
    client = Client(InstantEngine(), store.call_log())
    tools = Tools(client, store, SILENT, embedder, WordReranker())
    return kind(tools, source, [], config)


async def time_questions(memory: Any, draw: random.Random) -> list[float]:
    """Milliseconds of each question, no two of them alike."""
    taken = []
    for _ in range(QUESTIONS + 1):
        began = time.process_time()
        await memory.answer(Question(make_question(draw)))
        taken.append((time.process_time() - began) * 1000)
    return taken


def make_question(draw: random.Random) -> str:
    words = " ".join(draw.choices(VOCABULARY, WEIGHTS, k=4))
    return f"What did {draw.choice(NAMES)} say of {words}?"


def time_processes(home: Path, draw: random.Random) -> list[float]:
    """Milliseconds of whole processes that each ask one question."""
    script = Path(__file__).with_name("ask_once.py")
    taken = []
    for _ in range(PROCESSES):
        process = subprocess.Popen(
            [sys.executable, script, "ask", "talk", make_question(draw)],
            stdout=subprocess.DEVNULL,
            env={**os.environ, "MGL_HOME": f"{home}"},
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"mgl ask ended with {process.returncode}")
        taken.append((used.ru_utime + used.ru_stime) * 1000)
    return taken


async def append_turns(memory: Any, turns: Sequence[Turn], until: float) -> list[float]:
    """Milliseconds of each append; stops at ``until``."""
    taken: list[float] = []
    for turn in turns:
        if time.perf_counter() > until:
            break
        began = time.process_time()
        await memory.append(turn)
        taken.append((time.process_time() - began) * 1000)
    return taken


async def measure(
    name: str, sizes: Sequence[int], embedder: Embedder, path: Path, minutes: float
) -> list[dict[str, Any]]:
    turns, rows, done = synthetic_turns(), [], 0
    held: list[Turn] = []
    until = time.perf_counter() + minutes * 60
    for size in sizes:
        new = list(islice(turns, size - done))
        row: dict[str, Any] = {"memory": name, "turns": size}
        if name == "turns":
            held += new
            source = Conversation.from_turns("talk", held)
        else:
            source = Conversation.from_name("talk")
            with Store.open(path) as store:
                began = time.process_time()
                memory = open_memory(name, store, source, embedder)
                taken = await append_turns(memory, new, until)
                row["turns"] = size = done + len(taken)
                row["seconds"] = time.process_time() - began
            last = sorted(taken[-LAST:])
            row["append_ms"] = statistics.median(last)
            row["append_p95_ms"] = last[int(len(last) * 0.95)]
            row["append_mean_ms"] = statistics.mean(taken[-MANY:])
        with Store.open(path) as store:
            memory = open_memory(name, store, source, embedder)
            first, *others = await time_questions(memory, random.Random(size))
        row["first_ms"], row["question_ms"] = first, statistics.median(others)
        if name != "turns" and embedder.model_id == WordEmbedder(DIMS).model_id:
            asked = time_processes(path.parent, random.Random(size))
            row["ask_ms"] = statistics.median(asked)
        row["bytes"] = sum(file.stat().st_size for file in path.parent.glob("mgl.sqlite*"))
        row["bytes_a_turn"] = row["bytes"] / size
        print(json.dumps({key: _rounded(value) for key, value in row.items()}), flush=True)
        rows.append(row)
        if size < done + len(new):
            break  # out of time
        done = size
    return rows


def _rounded(value: Any) -> Any:
    return round(value, 2) if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--memory", nargs="+", choices=CONFIG, default=list(CONFIG))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--embedder", help="an embedding model; counts words without one")
    parser.add_argument("--minutes", type=float, default=60, help="to append to one memory")
    options = parser.parse_args()
    embedder: Embedder = WordEmbedder(DIMS)
    if options.embedder:
        embedder = open_embedder(options.embedder, shipped.home())
    for name in options.memory:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "mgl.sqlite"
            asyncio.run(measure(name, sorted(options.sizes), embedder, path, options.minutes))


if __name__ == "__main__":
    main()
