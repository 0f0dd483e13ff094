"""Readings of states that are made by hand, with an embedder and a reranker that are told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.base import Tools
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.reading import Reader, RetrievedEvents
from mgl.memories.gam.search import Search
from mgl.memories.gam.small import SmallGamConfig, SmallReader, SmallSearch
from mgl.memories.gam.state import Append, Consolidate, Edit, GamState, Link, Marks, Topic
from mgl.memories.options import choose_kind
from mgl.observer import SILENT
from mgl.retrieval.base import Embedder, EmbeddingTask, Reranker
from mgl.store import Store
from mgl.types import Question, Turn
from tests.memories.gam.conftest import replay

MAY = datetime(2023, 5, 8, 9, 0)
PLAIN = Question("What colour is it?")


class Likened:
    """An embedder that is told how like the question each text is; everything else is not."""

    model_id, dims = "fake/likened", 2

    def __init__(self, cosines: Mapping[str, float]) -> None:
        self._cosines = cosines

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        cosines = [1.0 if task == "query" else self._cosines.get(text, 0.0) for text in texts]
        return np.array([(c, math.sqrt(1 - c * c)) for c in cosines], dtype=np.float32)

    def close(self) -> None:
        pass


class Judging:
    """A reranker that is told P(relevant) of lines, and keeps what it was asked about."""

    model_id = "fake/judging"

    def __init__(self, chances: Mapping[str, float]) -> None:
        self._chances = chances
        self.judged: list[str] = []

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        assert query
        self.judged += texts
        return np.array([self._chances.get(text, 0.01) for text in texts], dtype=np.float32)

    async def aclose(self) -> None:
        pass


def spoken(count: int) -> list[Turn]:
    return [Turn(f"{n}", "Ann" if n % 2 else "Bo", f"said {n}", MAY) for n in range(count)]


def consolidated(
    sizes: Sequence[int],
    links: Sequence[tuple[str, str]] = (),
    marks: Mapping[int, Marks] | None = None,
    buffered: int = 0,
) -> GamState:
    """Topics t1, t2, … of so many turns each, with summaries "about 1", "about 2", …"""
    total = sum(sizes) + buffered
    edits: list[Edit] = [Append(number) for number in range(total)]
    first = 0
    for place, size in enumerate(sizes, 1):
        turns = tuple(range(first, first + size))
        known = {turn: (marks or {}).get(turn, Marks()) for turn in turns}
        edits.append(Consolidate(Topic(f"t{place}", f"about {place}", (), turns, known)))
        first += size
    edits += [Link(source, target, "semantic", 0.9) for source, target in links]
    return replay(edits)


async def reading_of(
    state: GamState,
    question: Question = PLAIN,
    *,
    likeness: Mapping[str, float] | None = None,
    chances: Mapping[str, float] | None = None,
    turns: Sequence[Turn] | None = None,
    judging: Reranker | None = None,
    embedder: Embedder | None = None,
    recent: Sequence[int] = (),
    **config: object,
) -> RetrievedEvents:
    said = turns or spoken(state.turns)
    llm = Client(ScriptedEngine([]), MemoryCallLog())
    alike, judge = embedder or Likened(likeness or {}), judging or Judging(chances or {})
    _, options = choose_kind("gam", {"indicators": "rules", **config}, lambda: "paper")
    assert isinstance(options, GamConfig)
    with TemporaryDirectory() as folder, Store.open(Path(folder) / "mgl.sqlite") as store:
        tools = Tools(llm, store, SILENT, alike, judge)
        if isinstance(options, SmallGamConfig):
            search = SmallSearch(tools, "test", options)
            reader: Reader = SmallReader(tools, state, said, options, search)
        else:
            reader = Reader(tools, state, said, options, Search(tools, "test", options))
        return await reader.read(question, recent=recent)
