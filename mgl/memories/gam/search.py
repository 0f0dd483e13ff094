"""What a GAM memory is searched by: indexes of its turns and topics that grow with its log.

They are derived from the log and lie beside it in the store. A consolidation adds its turns, so a
question adds what the buffer holds and no more. A deletion takes the rows of deleted turns out
(``mgl.memories.deletion``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mgl.memories.base import Tools
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.state import EMPTY, State, Topic, raw_text, topic_number
from mgl.memories.table import Table
from mgl.retrieval.base import Hit
from mgl.retrieval.lexical import LexicalIndex
from mgl.retrieval.ranking import fuse_hits
from mgl.retrieval.vectors import VectorIndex
from mgl.types import Turn

AROUND = 2  # turns on either side
_TEXT_BITS = 32
Scores = NDArray[np.float64]


def search_text(topic: Topic, turns: Sequence[Turn]) -> str:
    """What a topic is found by: its summary, or its raw text where it has none."""
    return topic.summary or raw_text(topic, turns)


class Search:
    """The turns of a memory by words and by meaning, and its topics by meaning."""

    def __init__(self, tools: Tools, name: str, config: GamConfig) -> None:
        """``name`` is that of the indexes in the store: the memory's id."""
        embedder = tools.required_embedder
        self.speakers: set[str] = set()
        self._config = config
        self._embedder = embedder
        self._state = EMPTY
        self._turns: Sequence[Turn] = ()
        self._known = 0
        self._words = LexicalIndex(tools.store, f"{name}/turns")
        self._lines = VectorIndex(embedder, tools.store, f"{name}/turns")
        self._topics = VectorIndex(embedder, tools.store, f"{name}/topics")
        self._keywords = LexicalIndex(tools.store, f"{name}/topics")
        self._indexed: Table[str, Topic] = Table()
        self._owned: Table[str, Topic] = Table()
        self._owners = np.zeros(0, dtype=np.int64)

    def follow(self, state: State, turns: Sequence[Turn]) -> None:
        """Search what the memory holds now; missing rows are added when they are searched."""
        self._state, self._turns = state, turns
        self.speakers.update(turn.speaker for turn in turns[self._known :] if turn.speaker)
        self._known = len(turns)

    async def index_turns(self) -> None:
        """Add the turns to the indexes that this configuration reads."""
        if self._config.meaning == "context":
            self._add_words()
        if self._config.compares_turns:
            await asyncio.to_thread(self._add_lines)

    async def score_in_context(self, query: str, numbers: Sequence[int]) -> Scores:
        """BM25 of some turns, each read with those around it in its session."""
        self._add_words()
        found = self._words.scores(query, numbers, before=AROUND, after=AROUND)
        return found.astype(np.float64)

    async def score_turns(self, query: str, numbers: Sequence[int]) -> Scores:
        """The cosine of a query with each of some turns."""

        def compare() -> Scores:
            self._add_lines()
            return self._lines.scores(query, numbers).astype(np.float64)

        return await asyncio.to_thread(compare)

    async def rank_by_events(self, query: str, k: int) -> list[str]:
        """The ``k`` topics whose best event is most like a query, the best first."""

        def compare() -> list[str]:
            self._add_lines()
            owners = self._find_owners()[self._lines.ids]
            best = np.full(self._state.made + 1, -np.inf)
            np.maximum.at(best, owners, self._lines.scores(query))
            best[0] = -np.inf
            order = np.argsort(-best, kind="stable")[:k]
            return [f"t{number}" for number in order if best[number] > -np.inf]

        return await asyncio.to_thread(compare)

    async def find_topics(self, query: str, k: int) -> list[str]:
        """The ``k`` topics most like a question, the best first (Eq. 9).

        Summaries are compared by meaning and keywords by their words, as E.2 has it; how both are
        joined (reciprocal ranks) is ours.
        """

        def compare() -> list[str]:
            self._add_topics()
            count = k + self._surplus()
            rankings = [self._topics.search(query, count), self._keywords.search(query, count)]
            return list(self._named(fuse_hits(rankings)))[:k]

        return await asyncio.to_thread(compare)

    async def score_topics(self, query: str, names: Sequence[str]) -> Scores:
        """The cosine of a query with the text of each of some topics."""

        def compare() -> Scores:
            self._add_topics()
            return self._topics.scores(query, list(self._rows(names))).astype(np.float64)

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
            hits = self._topics.search(vector, k + len(frozen) + self._surplus())
            named = self._named(hits).items()
            found = [(name, score) for name, score in named if name not in frozen]
            if new:
                cosines = self._embedder.embed(list(new.values())) @ vector
                found += zip(new, cosines.tolist(), strict=True)
            return sorted(found, key=lambda each: (-each[1], topic_number(each[0])))[:k]

        return await asyncio.to_thread(compare)

    def _add_words(self) -> None:
        turns, gone = self._turns, self._state.forgotten
        missing = _find_missing(self._words, len(turns), ())
        self._words.extend(
            {number: "" if number in gone else turns[number].text for number in missing},
            starts=[
                number
                for number in missing
                if number and turns[number].session != turns[number - 1].session
            ],
        )

    def _add_lines(self) -> None:
        missing = _find_missing(self._lines, len(self._turns), self._state.forgotten)
        self._lines.extend({number: self._turns[number].line for number in missing})

    def _add_topics(self) -> None:
        """Index what is new. A row is named by a topic and its text: one that changed is new."""
        known = self._state.topics
        changed = known.changes_since(self._indexed)
        is_afresh = len(self._topics) != len(self._indexed) or changed is None
        if is_afresh or any(name in self._indexed for name in changed or ()):
            is_afresh, changed = True, list(known)
        rows = self._rows(changed or ())
        indexes: list[tuple[LexicalIndex | VectorIndex, dict[int, str]]] = [
            (self._topics, {row: search_text(topic, self._turns) for row, topic in rows.items()})
        ]
        if self._config.anchoring == "summary":
            words = {row: " ".join(topic.keywords) for row, topic in rows.items()}
            indexes.append((self._keywords, words))
        for index, texts in indexes:
            there = set(index.ids.tolist()) if is_afresh else set()
            index.extend({row: text for row, text in texts.items() if row not in there})
            index.remove(there.difference(rows))
        self._indexed = known

    def _surplus(self) -> int:
        """How many rows are of topics that another process made, or of texts that changed."""
        return max(0, len(self._topics) - len(self._state.topics))

    def _named(self, hits: Sequence[Hit]) -> dict[str, float]:
        """The score of each topic that was found, the best first."""
        found: dict[str, float] = {}
        for hit in hits:
            if (name := f"t{hit.id >> _TEXT_BITS}") in self._state.topics:
                found.setdefault(name, hit.score)
        return found

    def _rows(self, names: Iterable[str]) -> dict[int, Topic]:
        """Topics by the ids that they have in the indexes."""
        topics = [self._state.topics[name] for name in names]
        texts = (" ".join([search_text(each, self._turns), *each.keywords]) for each in topics)
        return {
            topic_number(topic.id) << _TEXT_BITS | crc32(text.encode(errors="replace")): topic
            for topic, text in zip(topics, texts, strict=True)
        }

    def _find_owners(self) -> NDArray[np.int64]:
        """The number of the topic that each turn belongs to, 0 for none."""
        topics = self._state.topics
        if len(self._owners) < len(self._turns):
            self._owners = np.pad(self._owners, (0, 2 * len(self._turns) - len(self._owners)))
        changed = topics.changes_since(self._owned)
        for name in topics if changed is None else changed:
            self._owners[list(topics[name].turns)] = topic_number(name)
        self._owned = topics
        return self._owners


def _find_missing(
    index: LexicalIndex | VectorIndex, count: int, gone: Collection[int]
) -> list[int]:
    """The turns below ``count`` that an index lacks, in order, without those that are gone."""
    last = takewhile(lambda number: number not in index, reversed(range(count)))
    missing = [number for number in last if number not in gone]
    if len(index) + len(missing) + len(gone) == count:
        return missing[::-1]
    return sorted(set(range(count)).difference(gone, index.ids.tolist()))
