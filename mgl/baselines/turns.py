"""Turns: plain retrieval over a conversation, the best turns by words and by meaning, and one call.

The ``k`` turns that BM25 and vector likeness rank first, fused by reciprocal ranks, are read in the
order of the conversation: no topics, no links, no indicators.
"""

from __future__ import annotations

import asyncio

import numpy as np
from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig
from mgl.retrieval import LexicalIndex, reciprocal_rank_fusion
from mgl.retrieval.ranking import likeness
from mgl.types import Answer, Question

__all__ = ["Turns", "TurnsConfig"]


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

    async def _respond(self, question: Question) -> Answer:
        await self.build()
        lines = [turn.line for turn in self.conversation.turns]
        words = await asyncio.to_thread(lambda: LexicalIndex.of(lines).scores(question.text))
        alike = await likeness(self._tools.required_embedder, question.text, lines)
        scores = reciprocal_rank_fusion([words, alike])
        ranked = np.argsort(-scores, kind="stable")[: self._config.k]
        best = [int(place) for place in ranked]
        read = [self.conversation.line_span(place) for place in best]
        return await self._answer(question, self._turns(sorted(best)), read=read)
