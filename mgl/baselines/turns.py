"""Turns: plain retrieval over a conversation, the best turns by words and by meaning, and one call.

The ``k`` turns that BM25 and vector likeness rank first, fused by reciprocal ranks, are read in the
order of the conversation: no topics, no links, no indicators.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig
from mgl.retrieval import LexicalIndex, reciprocal_rank_fusion
from mgl.types import Answer, Conversation, Question

__all__ = ["Turns", "TurnsConfig"]


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
    _index: _Index | None = None

    async def _respond(self, question: Question) -> Answer:
        await self.build()
        scores = await asyncio.to_thread(self._score, question.text)
        ranked = np.argsort(-scores, kind="stable")[: self._config.k]
        best = [int(place) for place in ranked]
        read = [self.conversation.line_span(place) for place in best]
        return await self._answer(question, self._turns(sorted(best)), read=read)

    def _score(self, query: str) -> NDArray[np.float64]:
        """Score every turn; they are indexed once, and again after a deletion."""
        talk, embedder = self.conversation, self._tools.required_embedder
        if not talk.turns:
            return np.zeros(0)
        with _INDEXING:  # questions that are asked at once wait for the first one's index
            index = self._index
            if index is None or index.talk is not talk:
                lines = [turn.line for turn in talk.turns]
                index = _Index(talk, LexicalIndex.of(lines), embedder.embed(lines))
                self._index = index
        alike = index.vectors @ embedder.embed([query], task="query")[0]
        return reciprocal_rank_fusion([index.words.scores(query), alike])


@dataclass(frozen=True, slots=True)
class _Index:
    """The turns of a conversation by their words and by their meaning."""

    talk: Conversation
    words: LexicalIndex
    vectors: NDArray[np.float32]
