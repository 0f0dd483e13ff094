"""A process that streams a conversation into a memory: what the tests kill, and run side by side.

    python -m tests.memories.gam.streaming DATABASE NAME TURNS SEED [PAUSE_S]

It prints the number of turns that it found, then a line a turn. The engine answers by schema, so
that the same text gives the same replies in every process.
"""

from __future__ import annotations

import asyncio
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

from mgl.llm.client import Client
from mgl.llm.fakes import SchemaEngine
from mgl.memories.base import Tools
from mgl.memories.gam import Gam, GamConfig
from mgl.observer import SilentObserver
from mgl.retrieval.fakes import WordEmbedder, WordReranker
from mgl.store import Store
from mgl.types import Conversation, Turn

WORDS = "paint horse lake book garden kitchen train music letter bridge".split()


def turns(count: int, seed: int) -> list[Turn]:
    draw = random.Random(seed)
    start = datetime(2023, 5, 8, 13, 56)
    return [
        Turn(
            f"{place}",
            draw.choice(("Ann", "Bo")),
            " ".join(draw.sample(WORDS, 4)),
            start + timedelta(days=place // 7),
            f"{place // 7}",
        )
        for place in range(count)
    ]


def memory(store: Store, name: str, seed: int) -> Gam:
    tools = Tools(
        llm=Client(SchemaEngine(seed), store.call_log()),
        store=store,
        observer=SilentObserver(),
        clock=lambda: 0.0,
        embedder=WordEmbedder(),
        reranker=WordReranker(),
    )
    return Gam(tools, Conversation.named(name), (), GamConfig(buffer_tokens=48))


async def stream(path: Path, name: str, count: int, seed: int, pause: float) -> None:
    with Store.open(path) as store:
        growing = memory(store, name, seed)
        print(len(growing.conversation.turns) if store.steps(growing.id) else 0, flush=True)
        for turn in turns(count, seed):
            await growing.append(turn)
            print(turn.id, flush=True)
            await asyncio.sleep(pause)


if __name__ == "__main__":
    database, title, many, drawn, *rest = sys.argv[1:]
    asyncio.run(
        stream(Path(database), title, int(many), int(drawn), float(rest[0]) if rest else 0.0)
    )
