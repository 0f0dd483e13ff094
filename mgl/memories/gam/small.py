"""GAM for small models: topics are sessions, summaries are extracted, and events are ranked by the
words around them.

A topic's summary and keywords are its most telling utterances and words: a keyword is frequent in
the topic and rare among all turns so far (which counts twice); an utterance is telling where it
holds what the topic speaks of much and is not long. What an assistant said is in neither: a small
model takes it for what a person told. Topics are linked by likeness. Summaries and relations that a
small model writes find no more and take half an hour (LOG.md, 2026-11-23).

P_sem needs no cross-encoder: the words around a turn and its likeness stand for it, and a reranker
by late interaction if there is one (``mgl.retrieval.turns.weigh_in_context``).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from math import fsum, log, sqrt
from typing import ClassVar, Literal

import numpy as np

from mgl.memories.base import Tools
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.consolidate import KEYWORDS, Consolidator, Described, Relate
from mgl.memories.gam.memory import Gam
from mgl.memories.gam.reading import Reader
from mgl.memories.gam.search import Search, find_missing
from mgl.memories.gam.state import GamState, Topic, topic_number
from mgl.memories.propose import Proposal
from mgl.memories.rows import find_speakers
from mgl.memories.table import Table
from mgl.memories.turns import find_assistants, list_heard
from mgl.prompt import one_line
from mgl.retrieval.cues import ASSISTANT, Implied, remove_names
from mgl.retrieval.lexical import LexicalIndex, split_words
from mgl.retrieval.turns import (
    AROUND,
    Candidates,
    Scores,
    add_scores,
    add_words,
    weigh_in_context,
)
from mgl.text.stopwords import FUNCTION_WORDS, STOP_WORDS
from mgl.types import Turn

UTTERANCES, UTTERANCE_CHARACTERS = 2, 400
EVENTS_A_TOPIC = 10  # that are looked at first, for each topic that is wanted


class SmallGamConfig(GamConfig):
    """How a small model remembers and reads a conversation.

    ``anchoring`` is what of a topic is compared with the question: its best ``event``, or its
    ``summary`` and keywords (Eq. 9).
    ``meaning`` is where P_sem comes from: the ``context`` of a turn, or a reranker (``rerank``).
    """

    READING: ClassVar[frozenset[str]] = GamConfig.READING | {"anchoring", "meaning"}

    preset: Literal["paper", "small"] = "small"
    partition: Literal["semantic", "session", "window", "turns"] = "session"
    indicators: Literal["prompt", "rules"] = "rules"
    anchoring: Literal["summary", "event"] = "event"
    meaning: Literal["rerank", "context"] = "context"


class SmallSearch(Search):
    """Finds turns by words, too, and topics by their turns."""

    _config: SmallGamConfig

    def __init__(self, tools: Tools, name: str, config: SmallGamConfig) -> None:
        super().__init__(tools, name, config)
        self.spread = WordSpread()
        self._words = LexicalIndex(tools.store, f"{name}/turns")
        self._owned: Table[str, Topic] = Table()
        self._owners: dict[int, str] = {}

    async def index_turns(self) -> None:
        config = self._config
        if config.meaning == "context":
            self._add_words()
        if config.meaning == "context" or config.anchoring == "event" or config.without == "mfr":
            await asyncio.to_thread(self._add_lines)

    async def score_in_context(self, query: str, numbers: Sequence[int]) -> Scores:
        """BM25 of some turns, each read with those around it in its session."""
        self._add_words()
        found = self._words.scores(query, numbers, before=AROUND, after=AROUND)
        return found.astype(np.float64)

    async def rank_by_events(self, query: str, k: int) -> list[str]:
        """The ``k`` topics whose best event is most like a query, the best first."""

        def compare() -> list[str]:
            self._add_lines()
            vector = self._embed(query)
            owners, count = self._find_owners(), EVENTS_A_TOPIC * k
            wanted, found = min(k, len(self._owned)), dict[str, None]()
            while len(found) < wanted:
                hits = self._lines.search(vector, count)
                found = dict.fromkeys(owners[hit.id] for hit in hits if hit.id in owners)
                if count >= len(self._lines):
                    break
                count *= EVENTS_A_TOPIC
            return list(found)[:k]

        return await asyncio.to_thread(compare)

    async def score_topics(self, query: str, names: Sequence[str]) -> Scores:
        """The cosine of a query with the text of each of some topics."""

        def compare() -> Scores:
            self._add_topics()
            numbers = [topic_number(name) for name in names]
            return self._topics.scores(query, numbers).astype(np.float64)

        return await asyncio.to_thread(compare)

    def _add_words(self) -> None:
        missing = find_missing(self._words.known, len(self._turns), ())
        add_words(self._words, self._turns, missing, self._state.forgotten)

    def _find_owners(self) -> dict[int, str]:
        """The topic that each turn belongs to; the buffer's have none."""
        topics = self._state.topics
        changed = topics.changes_since(self._owned)
        if changed is None:  # topics went
            self._owners, changed = {}, list(topics)
        for name in changed:
            self._owners.update(dict.fromkeys(topics[name].turns, name))
        self._owned = topics
        return self._owners


class SmallReader(Reader):
    """Finds events by the words around them, and topics by their events."""

    _config: SmallGamConfig
    _search: SmallSearch

    async def _anchors(self, question: str) -> list[str]:
        search, config = self._search, self._config
        if config.anchoring == "summary":
            return await super()._anchors(question)
        found = await search.rank_by_events(remove_names(question, search.speakers), config.anchors)
        return [name for name in found if name in self._state.topics]  # others came meanwhile

    async def _chances(self, question: str, numbers: Sequence[int], weights: Scores) -> Scores:
        config, search = self._config, self._search
        if config.without == "mfr" or config.meaning == "rerank":
            return await super()._chances(question, numbers, weights)
        query = remove_names(question, search.speakers)
        words = await search.score_in_context(query, numbers)
        scores = add_scores(words, await search.score_turns(query, numbers))
        among = Candidates(query, self._turns, numbers, self._state.forgotten)
        return await weigh_in_context(among, scores, weights, self._tools.reranker)

    def _find_fired(
        self, numbers: Sequence[int], owners: Mapping[int, str | None], implied: Implied
    ) -> list[tuple[str, ...]]:
        """The indicators that hold; what a person asks an assistant tells as much as a statement,
        so there the indicator of confidence holds for nothing."""
        fired = super()._find_fired(numbers, owners, implied)
        if ASSISTANT not in self._search.speakers:
            return fired
        return [tuple(name for name in names if name != "conf") for names in fired]

    async def _score_topics(self, question: str, names: Sequence[str]) -> Scores:
        if self._config.meaning == "rerank":
            return await super()._score_topics(question, names)
        return await self._search.score_topics(question, names)


class SmallConsolidator(Consolidator):
    """Describes and links topics without a model."""

    _search: SmallSearch

    async def _describe(self, part: Sequence[int], time: int = 0) -> Described:
        del time  # no call is made that could fail
        turns = [self._turns[number] for number in part]
        heard = (each for turn in turns for each in list_heard(turn.id))
        assistants = find_assistants(turns, find_speakers(self._turns, heard))
        told = [number for number in part if self._turns[number].speaker not in assistants] or part
        spread = self._search.spread
        spread.extend(self._turns, told[-1] + 1)
        return extract_summary([self._turns[number].line for number in told], spread)

    async def _judge(
        self, topic: Topic, found: Sequence[tuple[str, float]], earlier: GamState
    ) -> Sequence[Proposal[Relate]]:
        del topic, earlier
        likely = (min(1.0, max(0.0, cosine)) for _, cosine in found)
        return [
            Proposal("relation", Relate(relation="semantic", confidence=each)) for each in likely
        ]


class SmallGam(Gam):
    """Groups the events of a conversation into topics without a call of a model."""

    Config = SmallGamConfig
    search_type = SmallSearch
    reader_type = SmallReader
    writes_topics = False
    consolidator_type = SmallConsolidator
    _config: SmallGamConfig

    @property
    def _asks_judge(self) -> bool:
        return self._config.meaning == "rerank" and super()._asks_judge


def extract_summary(lines: Sequence[str], spread: WordSpread) -> Described:
    """Summary and keywords of some lines, without a model."""
    keywords = spread.weigh(split_words(lines, FUNCTION_WORDS), 2)
    best_words = sorted(keywords, key=lambda word: (-keywords[word], word))[:KEYWORDS]
    bags = split_words(lines, STOP_WORDS)
    weights = spread.weigh(bags, 1)
    telling = [fsum(weights[word] for word in set(bag)) / sqrt(1 + len(bag)) for bag in bags]
    best = sorted(range(len(lines)), key=lambda place: -telling[place])[:UTTERANCES]
    summary = " ".join(
        one_line(lines[place])[:UTTERANCE_CHARACTERS].rstrip() for place in sorted(best)
    )
    return Described(summary, tuple(best_words))


class WordSpread:
    """In how many of the first turns each word occurs; it grows as turns come."""

    def __init__(self) -> None:
        self._turns = 0
        self._spread: Counter[str] = Counter()

    def extend(self, turns: Sequence[Turn], count: int) -> None:
        """Count the first ``count`` turns; fewer than before are counted anew."""
        if count < self._turns:
            self._turns = 0
            self._spread.clear()
        lines = (turn.line for turn in turns[self._turns : count])
        self._spread.update(chain.from_iterable(map(set, split_words(lines))))
        self._turns = count

    def weigh(self, bags: Sequence[Sequence[str]], rarity: int) -> dict[str, float]:
        """How telling each word of some texts is: its count × log(1 + N / spread) ** rarity."""
        return {
            word: count * log(1 + self._turns / max(1, self._spread[word])) ** rarity
            for word, count in Counter(chain.from_iterable(bags)).items()
        }
