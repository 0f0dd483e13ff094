#!/usr/bin/env python3
"""What embedding costs beside a model that writes, with the engine here and in its own process.

    scripts/bench/beside.py --model qwen2.5-coder-1.5b --texts 400 --rounds 3

Each round embeds the same passages three times: alone, beside an engine in this process, and beside
one in a process of its own; the engine reads and writes 8 prompts of a part of the demo's story all
the while. Seconds are of a machine that others may use: compare within a round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from mgl.llm.base import Engine, Message, Request, Sampling
from mgl.llm.engines import open_engine
from mgl.llm.progress import listen
from mgl.models import shipped
from mgl.models.fetch import fetch_weights
from mgl.models.profiles import load_profile
from mgl.retrieval.models import Source
from mgl.retrieval.opening import DEFAULT_EMBEDDER, open_embedder
from mgl.store import Store
from mgl.text import read_document

STORY = Path(__file__).parents[2] / "examples" / "a-scandal-in-bohemia.txt"
AT_ONCE, CHARACTERS, PASSAGE = 8, 4_000, 900


class Writing:
    """Keeps an engine busy with long replies, and counts their tokens."""

    def __init__(self, engine: Engine, text: str) -> None:
        self._engine, self._text = engine, text
        self.tokens = 0

    async def run(self) -> None:
        await asyncio.gather(*(self._ask(place) for place in range(AT_ONCE)))

    async def _ask(self, place: int) -> None:
        start = place * CHARACTERS
        for turn in range(1_000):
            ask = f"{self._text[start : start + CHARACTERS]}\n\nTell it again, version {turn}."
            request = Request((Message("user", ask),), sampling=Sampling(max_tokens=100))
            with listen(self._count):
                await self._engine.generate(request)

    def _count(self, _text: str) -> None:
        self.tokens += 1


async def measure(arguments: argparse.Namespace) -> None:
    home, profile = shipped.home(), load_profile(arguments.model)
    weights = fetch_weights(profile, home)
    (cache,) = (home / "converted").glob(f"{profile.name}-*")
    text = read_document(STORY).text
    step = (len(text) - PASSAGE) // arguments.texts
    passages = [text[at * step : at * step + PASSAGE] for at in range(arguments.texts)]
    with Store.open(home / "beside.sqlite") as store:
        embedder = open_embedder(DEFAULT_EMBEDDER, home, source=Source(), cache=store)
        plain: Any = getattr(embedder, "_embedder", embedder)  # without the cache of vectors
        plain.embed(passages[:8])
        first = None
        for number in range(arguments.rounds):
            for name in ("alone", "here", "own process"):
                engine = None
                if name != "alone":
                    place = home if name == "own process" else None
                    engine = await open_engine(profile, weights=weights, cache=cache, home=place)
                seconds, tokens, found = await embed_beside(
                    engine, text, lambda: plain.embed(passages)
                )
                first = found if first is None else first
                assert np.allclose(found, first, atol=1e-6)
                row = {"round": number, "engine": name, "seconds": round(seconds, 1)}
                print(json.dumps({**row, "tokens": tokens}), flush=True)
                if engine is not None:
                    await engine.aclose()


async def embed_beside(
    engine: Engine | None, text: str, embed: Callable[[], Any]
) -> tuple[float, int, Any]:
    """Seconds of the embedding, tokens written meanwhile, and the vectors."""
    if engine is None:
        start = time.perf_counter()
        found = await asyncio.to_thread(embed)
        return time.perf_counter() - start, 0, found
    writing = Writing(engine, text)
    task = asyncio.create_task(writing.run())
    await asyncio.sleep(5)
    start, before = time.perf_counter(), writing.tokens
    found = await asyncio.to_thread(embed)
    seconds, tokens = time.perf_counter() - start, writing.tokens - before
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return seconds, tokens, found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model", default="qwen2.5-coder-1.5b", help="model profile")
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
