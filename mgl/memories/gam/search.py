"""What a GAM memory is searched by: indexes of its turns and topics that grow with its log.

They are derived from the log and lie beside it in the store: missing rows are added when something
is searched for, so a memory of 100,000 turns reads only what is new. A deletion takes the rows of
deleted turns out of the indexes (``mgl.memories.deletion``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mgl.memories.base import Tools
from mgl.memories.gam.state import EMPTY, State, Topic, raw_text
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.vectors import VectorIndex
from mgl.types import Turn

__all__ = ["AROUND", "Search", "search_text"]

AROUND = 2  # turns on either side
_Scores = NDArray[np.float64]


def search_text(topic: Topic, turns: Sequence[Turn]) -> str:
    """What a topic is found by: its summary, or its raw text where it has none."""
    return topic.summary or raw_text(topic, turns)


class Search:
    """The turns of a memory by words and by meaning, and its topics by meaning."""

    def __init__(self, tools: Tools, name: str) -> None:
        """``name`` is that of the indexes in the store: the memory's id."""
        embedder = tools.required_embedder
        self._embedder = embedder
        self._state = EMPTY
        self._turns: Sequence[Turn] = ()
        self._words = LexicalIndex(tools.store, f"{name}/turns")
        self._lines = VectorIndex(embedder, tools.store, f"{name}/turns")
        self._topics = VectorIndex(embedder, tools.store, f"{name}/topics")

    def follow(self, state: State, turns: Sequence[Turn]) -> None:
        """Search what the memory holds now; missing rows are added when they are searched."""
        self._state, self._turns = state, turns

    async def score_in_context(self, query: str, numbers: Sequence[int]) -> _Scores:
        """BM25 of some turns, each read with those around it in its session."""
        self._add_words()
        found = self._words.scores(query, numbers, before=AROUND, after=AROUND)
        return found.astype(np.float64)

    async def score_turns(self, query: str, numbers: Sequence[int]) -> _Scores:
        """The cosine of a query with each of some turns."""

        def compare() -> _Scores:
            self._add_lines()
            return self._lines.scores(query, numbers).astype(np.float64)

        return await asyncio.to_thread(compare)

    async def rank_by_events(self, query: str, k: int) -> list[str]:
        """The ``k`` topics whose best event is most like a query, the best first."""
        topics = self._state.topics
        if not topics:
            return []
        numbers = list(chain.from_iterable(topic.turns for topic in topics.values()))
        scores = await self.score_turns(query, numbers)
        sizes = [len(topic.turns) for topic in topics.values()]
        best = np.maximum.reduceat(scores, np.cumsum([0, *sizes[:-1]]))
        names = list(topics)
        return [names[place] for place in np.argsort(-best, kind="stable")[:k]]

    async def find_topics(self, query: str, k: int) -> list[str]:
        """The ``k`` topics most like a question, the best first (Eq. 9)."""

        def compare() -> list[str]:
            self._add_topics()
            return [f"t{hit.id}" for hit in self._topics.search(query, k)]

        return await asyncio.to_thread(compare)

    async def find_alike(
        self, text: str, k: int, new: Mapping[str, str], frozen: Collection[str]
    ) -> list[tuple[str, float]]:
        """The ``k`` topics most like a new one with their cosine, the best first.

        ``new`` are texts of topics that the log does not hold yet; ``frozen`` ones are left out.
        """

        def compare() -> list[tuple[str, float]]:
            self._add_topics()
            vector = self._embedder.embed([text])[0]
            free = [_number(name) for name in self._state.topics if name not in frozen]
            hits = self._topics.search(vector, k, among=free)
            found = [(f"t{hit.id}", hit.score) for hit in hits]
            if new:
                cosines = self._embedder.embed(list(new.values())) @ vector
                found += zip(new, cosines.tolist(), strict=True)
            return sorted(found, key=lambda each: (-each[1], _number(each[0])))[:k]

        return await asyncio.to_thread(compare)

    def drop_topics(self, names: Iterable[str]) -> None:
        """Take topics out whose text has changed; they come back with their new one."""
        self._topics.remove([_number(name) for name in names])

    def _add_words(self) -> None:
        turns, words = self._turns, self._words
        if len(words) == len(turns):
            return
        missing = sorted(set(range(len(turns))).difference(words.ids.tolist()))
        gone = self._state.forgotten
        words.extend(
            {number: "" if number in gone else turns[number].text for number in missing},
            starts=[
                number
                for number in missing
                if number and turns[number].session != turns[number - 1].session
            ],
        )

    def _add_lines(self) -> None:
        turns, gone = self._turns, self._state.forgotten
        if len(self._lines) + len(gone) < len(turns):
            missing = set(range(len(turns))).difference(gone, self._lines.ids.tolist())
            self._lines.extend({number: turns[number].line for number in sorted(missing)})

    def _add_topics(self) -> None:
        known = {_number(name): topic for name, topic in self._state.topics.items()}
        self._topics.remove([number for number in self._topics.ids.tolist() if number not in known])
        self._topics.extend(
            {
                number: search_text(topic, self._turns)
                for number, topic in known.items()
                if number not in self._topics
            }
        )


def _number(name: str) -> int:
    return int(name[1:])
