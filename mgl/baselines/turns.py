"""Turns: plain retrieval over a conversation, the best turns by words and by meaning, and one call.

The ``k`` turns that BM25 and vector likeness rank first, fused by reciprocal ranks, are read in the
order of the conversation: no topics, no links, no indicators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig
from mgl.errors import UsageError
from mgl.retrieval import LexicalIndex, reciprocal_rank_fusion
from mgl.retrieval.base import Embedder
from mgl.retrieval.ranking import likeness
from mgl.types import Answer, Question

__all__ = ["Turns", "TurnsConfig"]


class TurnsConfig(BaselineConfig):
    """``by`` is what ranks turns, ``k`` how many are read."""

    by: Literal["both", "words", "meaning"] = "both"
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
        scores = await self._scores(question.text, lines)
        ranked = np.argsort(-scores, kind="stable")[: self._config.k]
        best = [int(place) for place in ranked]
        read = [self.conversation.line_span(place) for place in best]
        return await self._answer(question, self._turns(sorted(best)), read=read)

    async def _scores(self, query: str, lines: Sequence[str]) -> NDArray[np.float64]:
        rankings = []
        if self._config.by != "meaning":
            rankings.append(await asyncio.to_thread(lambda: LexicalIndex.of(lines).scores(query)))
        if self._config.by != "words":
            rankings.append(await likeness(self._embedder, query, lines))
        return reciprocal_rank_fusion(rankings)

    @property
    def _embedder(self) -> Embedder:
        if self._tools.embedder is None:
            raise UsageError(
                "turns needs an embedding model",
                hint="install the extra [retrieval], or set by=words",
            )
        return self._tools.embedder
