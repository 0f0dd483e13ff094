"""What a GAM memory is searched by: indexes of its turns and topics that grow with its log.

They are derived from the log. Those of turns lie beside it in the store: a consolidation adds its
turns, so a question adds what the buffer holds and no more, and a deletion takes deleted turns out
(``mgl.store.deletion``). Those of topics, which are few, are made anew by each process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from mgl.llm.calls import note_made_of
from mgl.memories.base import Tools
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.state import EMPTY, GamState, Topic, raw_text, topic_number
from mgl.memories.rows import list_speakers
from mgl.memories.table import Table
from mgl.retrieval.cues import Marks, mark_turn
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.ranking import fuse_hits
from mgl.retrieval.turns import Scores
from mgl.retrieval.vectors import VectorIndex
from mgl.types import Turn

Vector = NDArray[np.float32]


def search_text(topic: Topic, turns: Sequence[Turn]) -> str:
    """What a topic is found by: its summary, or its raw text where it has none."""
    return topic.summary or raw_text(topic, turns)


class Search:
    """The turns of a memory by words and by meaning, and its topics by meaning.

    It grows with the memory; after a deletion another is needed.
    """

    def __init__(self, tools: Tools, name: str, config: GamConfig) -> None:
        """``name`` is that of the indexes in the store: the memory's id."""
        embedder = tools.required_embedder
        self.speakers: set[str] = set()
        self._config = config
        self._embedder = embedder
        self._state = EMPTY
        self._turns: Sequence[Turn] = ()
        self._known = 0
        self._lines = VectorIndex(embedder, tools.store, f"{name}/turns")
        self._topics = VectorIndex(embedder)
        self._keywords = LexicalIndex()
        self._indexed: Table[str, Topic] = Table()
        self._marks: dict[int, Marks] = {}
        self._asked: tuple[str | None, Vector] = None, np.zeros(0, dtype=np.float32)

    def follow(self, state: GamState, turns: Sequence[Turn]) -> None:
        """Search what the memory, or a draft, holds now; rows are added when they are searched."""
        self._state, self._turns = state, turns
        self.speakers.update(filter(None, list_speakers(turns, self._known)))
        self._known = len(turns)

    def mark(self, number: int) -> Marks:
        """The marks of a turn that is in no topic yet."""
        if number not in self._marks:
            self._marks[number] = mark_turn(self._turns[number])
        return self._marks[number]

    async def index_turns(self) -> None:
        """Add the turns to the indexes that this configuration reads."""
        if self._config.without == "mfr":
            await asyncio.to_thread(self._add_lines)

    async def score_turns(self, query: str, numbers: Sequence[int]) -> Scores:
        """The cosine of a query with each of some turns."""

        def compare() -> Scores:
            self._add_lines()
            return self._lines.scores(self._embed(query), numbers).astype(np.float64)

        if self._asked[0] == query:  # nothing is left that takes long
            return compare()
        return await asyncio.to_thread(compare)

    async def find_topics(self, query: str, k: int) -> list[str]:
        """The ``k`` topics most like a question, the best first (Eq. 9).

        Summaries are compared by meaning and keywords by their words, as E.2 has it; how both are
        joined (reciprocal ranks) is ours.
        """

        def compare() -> list[str]:
            self._add_topics()
            rankings = [self._topics.search(query, k), self._keywords.search(query, k)]
            return [f"t{hit.id}" for hit in fuse_hits(rankings)[:k]]

        return await asyncio.to_thread(compare)

    async def find_alike(self, text: str, k: int) -> list[tuple[str, float]]:
        """The ``k`` topics most like a new one with their cosine, the best first; no frozen one."""

        def compare() -> list[tuple[str, float]]:
            self._add_topics()
            frozen = {name for name, topic in self._state.topics.items() if topic.frozen}
            vector = self._embedder.embed([text])[0]
            hits = self._topics.search(vector, k + len(frozen))
            return [(f"t{hit.id}", hit.score) for hit in hits if f"t{hit.id}" not in frozen][:k]

        return await asyncio.to_thread(compare)

    def _embed(self, query: str) -> Vector:
        """The vector of a query; the last one is kept, since a reading compares it twice."""
        asked, vector = self._asked
        if asked != query:
            vector = self._embedder.embed([query], task="query")[0]
            self._asked = query, vector
        return vector

    def _add_lines(self) -> None:
        missing = find_missing(self._lines.known, len(self._turns), self._state.forgotten)
        lines = {number: self._turns[number].line for number in missing}
        with note_made_of({line: (number,) for number, line in lines.items()}):
            self._lines.extend(lines)

    def _add_topics(self) -> None:
        """Index the topics that are new or were rewritten."""
        topics = self._state.topics
        names = topics.changes_since(self._indexed)
        if names is None:  # one was merged away, or a draft that was followed has become void
            self._topics, self._keywords = VectorIndex(self._embedder), LexicalIndex()
            names = list(topics)
        changed = [topics[name] for name in names]
        texts = {topic_number(each.id): search_text(each, self._turns) for each in changed}
        with note_made_of(
            {text: each.turns for text, each in zip(texts.values(), changed, strict=True)}
        ):
            self._topics.extend(texts)
        self._keywords.extend({topic_number(t.id): " ".join(t.keywords) for t in changed})
        self._indexed = topics


def find_missing(known: Collection[int], count: int, gone: Collection[int]) -> list[int]:
    """The turns below ``count`` that are not known, in order; none that were deleted."""
    last = takewhile(lambda number: number not in known, reversed(range(count)))
    missing = [number for number in last if number not in gone]
    if len(known) + len(missing) + len(gone) == count:
        return missing[::-1]
    return sorted(set(range(count)).difference(gone, known))
