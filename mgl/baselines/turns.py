"""Turns: plain retrieval over a conversation, the best turns and one call.

The ``k`` turns that rank first are read in the order of the conversation: no topics, no links. They
are ranked as GAM's preset small ranks events (``weigh_in_context``), by words in context and by
meaning, those of a speaker whom the question names before others, so that what such a memory finds
beyond this is its own.
"""

from __future__ import annotations

import asyncio
from threading import Lock

import numpy as np
from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig
from mgl.retrieval import LexicalIndex
from mgl.retrieval.turns import (
    AROUND,
    SPEAKER_WEIGHT,
    Scores,
    add_words,
    find_speakers,
    remove_names,
    weigh_in_context,
)
from mgl.retrieval.vectors import VectorIndex, open_index
from mgl.types import Answer, Conversation, Question

_INDEXING = Lock()


class TurnsConfig(BaselineConfig):
    """``k`` is how many turns are read."""

    k: int = Field(10, ge=1)


class Turns(Baseline):
    """Reads the k best turns for a question."""

    kind = "turns"
    reads = "conversation"
    retrieves = True
    Config = TurnsConfig
    _config: TurnsConfig
    _indexed: tuple[Conversation, LexicalIndex, VectorIndex] | None = None

    async def _respond(self, question: Question) -> Answer:
        await self.build()
        scores = await self._score(question)
        ranked = (int(place) for place in np.argsort(-scores, kind="stable"))
        best = [place for place in ranked if place not in self._gone][: self._config.k]
        read = [self.conversation.line_span(place) for place in best]
        return await self._answer(question, self._turns(sorted(best)), read=read)

    async def _score(self, question: Question) -> Scores:
        talk = self.conversation
        turns, numbers = talk.turns, range(len(talk.turns))
        speakers = {turn.speaker for turn in turns if turn.speaker}
        meant = find_speakers(question, speakers)
        weights = np.array([SPEAKER_WEIGHT if turn.speaker in meant else 1.0 for turn in turns])
        query = remove_names(question.text, speakers)

        def search() -> tuple[Scores, Scores]:
            words, lines = self._index()
            found = words.scores(query, before=AROUND, after=AROUND)
            return found.astype(np.float64), lines.scores(query, numbers).astype(np.float64)

        words, alike = await asyncio.to_thread(search)
        return weights * await weigh_in_context(
            query,
            turns,
            numbers,
            words=words,
            alike=alike,
            weights=weights,
            reranker=self._tools.reranker,
        )

    def _index(self) -> tuple[LexicalIndex, VectorIndex]:
        """The turns by their words and by their meaning; indexed once, and again after a deletion.

        Questions that are asked at once wait for the first one's index.
        """
        talk, embedder = self.conversation, self._tools.required_embedder
        with _INDEXING:
            if self._indexed is None or self._indexed[0] is not talk:
                words, lines = LexicalIndex(), open_index(embedder)
                add_words(words, talk.turns, range(len(talk.turns)))
                lines.extend({n: turn.line for n, turn in enumerate(talk.turns)})
                self._indexed = talk, words, lines
            return self._indexed[1:]
