#!/usr/bin/env python3
"""Measure what it costs to forget: model calls per forgotten turn, calls kept, ms, bytes searched.

    python scripts/bench/forgetting.py DATA/locomo/locomo10.dev5.json [--turns 20] [--sessions 8]

The first sessions of the first LoCoMo conversation are built into each memory with a model that
answers by schema and counts what it is asked. Then turns are forgotten one by one, each followed
by a build. ``calls`` is what a build asks per forgotten turn, ``emptied`` the share of logged
calls that cannot be replayed any more, ``ms`` the median time of a deletion; ``left`` counts the
words that only deleted turns had and that are still in the files (SQL and the prompts have words
of their own: "unique"). It runs on older versions of the
package, too (PYTHONPATH), to be compared with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import sqlite3
import statistics
import tempfile
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from mgl.llm.base import Completion, Request
from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.memories.gam import Gam, GamConfig
from mgl.memories.mnemis import Mnemis, MnemisConfig
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation, Turn

try:
    from mgl.observer import SILENT
except ImportError:
    from mgl.memories.base import SILENT  # type: ignore[attr-defined, no-redef]

CASES: dict[str, tuple[Any, Any, dict[str, object]]] = {
    "gam": (Gam, GamConfig, {}),
    "gam, extract": (Gam, GamConfig, {"summaries": "extract", "relations": "similarity"}),
    "mnemis, turns, by terms": (
        Mnemis,
        MnemisConfig,
        {"extraction": "terms", "hierarchy": "incremental"},
    ),
    "mnemis, sessions": (Mnemis, MnemisConfig, {"episode": "session", "hierarchy": "incremental"}),
}


class Counting(SchemaEngine):
    """Answers by schema; names words of the prompt where it is to name something."""

    calls = 0

    async def generate(self, request: Request) -> Completion:
        self.calls += 1
        completion = await super().generate(request)
        if "entities" not in json.dumps(request.json_schema or {}):
            return completion
        names = list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]{3,}", request.messages[0].content)))
        said = json.dumps({"entities": [{"name": name} for name in names[-8:]]})
        plain = json.dumps({"entities": names[-8:]})
        listed = '"name"' in json.dumps(request.json_schema)
        text = said if listed else plain
        return Completion(text, "stop", completion.usage)


def read_turns(path: Path, sessions: int) -> list[Turn]:
    data = json.loads(path.read_text())[0]["conversation"]
    turns = []
    for number in range(1, sessions + 1):
        time_ = datetime.strptime(data[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        turns += [
            Turn(each["dia_id"], each["speaker"], each["text"], time_, str(number))
            for each in data[f"session_{number}"]
            if each["text"].strip()
        ]
    return turns


def words_of(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.casefold()))


async def measure(name: str, turns: list[Turn], count: int, path: Path) -> str:
    kind, settings, options = CASES[name]
    talk = Conversation.from_turns("locomo", turns)
    with Store.open(path) as store:
        engine = Counting()
        tools = Tools(
            llm=Client(engine, store.call_log()),
            store=store,
            observer=SILENT,
            clock=lambda: 0.0,
            embedder=WordEmbedder(64),
            reranker=WordReranker(),
        )
        memory = kind(tools, talk, (), settings.model_validate(options))
        await memory.build()
        await memory.flush()
        built = engine.calls
        chosen = random.Random(7).sample(turns, count)
        times = []
        for turn in chosen:
            start = time.perf_counter()
            await memory.forget([turn.id])
            times.append(1000 * (time.perf_counter() - start))
            await memory.build()
        asked = engine.calls - built
        with closing(sqlite3.connect(path)) as reader:
            (emptied,) = reader.execute(
                "SELECT count(*) FROM llm_calls WHERE key LIKE 'redacted%'"
            ).fetchone()
    lost, found = find_words(path, turns, {turn.id for turn in chosen})
    return (
        f"| {name} | {built} | {asked / count:.2f} | {emptied / max(1, built + asked):.0%} "
        f"| {statistics.median(times):.0f} | {len(found)} of {lost}: {', '.join(sorted(found))} |"
    )


def find_words(path: Path, turns: list[Turn], gone: set[str]) -> tuple[int, set[str]]:
    """How many words only deleted turns had, and those of them that are still in the files."""
    lost = set().union(*(words_of(turn.text) for turn in turns if turn.id in gone))
    lost -= set().union(*(words_of(turn.text) for turn in turns if turn.id not in gone))
    held = b" ".join(file.read_bytes().lower() for file in path.parent.glob(f"{path.name}*"))
    return len(lost), {word for word in lost if re.search(rb"\b" + word.encode() + rb"\b", held)}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="a LoCoMo file")
    parser.add_argument("--turns", type=int, default=20, help="turns to forget")
    parser.add_argument("--sessions", type=int, default=8, help="sessions to build from")
    arguments = parser.parse_args()
    turns = read_turns(arguments.data, arguments.sessions)
    print(f"{len(turns)} turns, of which {arguments.turns} are forgotten\n")
    print("| memory | calls of the build | calls per forgotten turn | emptied | ms | words left |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for place, name in enumerate(CASES):
            path = Path(folder) / f"{place}.sqlite"
            print(await measure(name, turns, arguments.turns, path), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
