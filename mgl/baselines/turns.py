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
from pydantic import BaseModel, ConfigDict, Field

from mgl.baselines.record import Baseline
from mgl.errors import UsageError
from mgl.llm.base import Sampling
from mgl.memories.base import Tools
from mgl.replying import reply_from, turns_as_memories
from mgl.retrieval import Bm25, reciprocal_rank_fusion
from mgl.retrieval.base import Embedder
from mgl.retrieval.likeness import likeness
from mgl.types import Answer, Conversation, Question

__all__ = ["Turns", "TurnsConfig"]


class TurnsConfig(BaseModel):
    """``by`` is what ranks turns, ``k`` how many are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: Literal["both", "words", "meaning"] = "both"
    k: int = Field(10, ge=1)
    answer_tokens: int = Field(120, ge=16)


class Turns(Baseline):
    """Reads the k best turns for a question."""

    kind = "turns"
    reads = "conversation"
    retrieves = True
    Config = TurnsConfig

    def __init__(
        self,
        tools: Tools,
        source: Conversation,
        questions: Sequence[Question] = (),
        config: TurnsConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        self._config = config or TurnsConfig()
        self.conversation = source
        super().__init__(tools, source, questions, self._config, identity=identity)

    async def answer(self, question: Question) -> Answer:
        await self.build()
        lines = [turn.line for turn in self.conversation.turns]
        scores = await self._scores(question.text, lines)
        ranked = np.argsort(-scores, kind="stable")[: self._config.k]
        best = [int(place) for place in ranked]
        return await reply_from(
            self._tools.llm,
            self.conversation,
            turns_as_memories(self.conversation.turns, best),
            question,
            sampling=Sampling(max_tokens=self._config.answer_tokens),
            ranked=best,
        )

    async def _scores(self, query: str, lines: Sequence[str]) -> NDArray[np.float64]:
        rankings = []
        if self._config.by != "meaning":
            rankings.append(await asyncio.to_thread(lambda: Bm25(lines).scores(query)))
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
