"""Turns: plain retrieval over a conversation, the best turns and one call.

The ``k`` turns that rank first are read in the order of the conversation: no topics, no links. They
are ranked as the small kinds of GAM and Mnemis rank theirs (``mgl.retrieval.turns``), so that what
such a memory finds beyond this is its own.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from threading import Lock

import numpy as np
from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig
from mgl.retrieval.turns import Scores, TurnIndex, rank_turns
from mgl.types import Answer, Conversation, Question

_INDEXING = Lock()


class TurnsConfig(BaselineConfig):
    """``k`` is how many turns are read."""

    k: int = Field(10, ge=1)


class Turns(Baseline[None]):
    """Reads the k best turns for a question."""

    kind = "turns"
    reads = "conversation"
    retrieves = True
    Config = TurnsConfig
    _config: TurnsConfig
    _indexed: tuple[Conversation, TurnIndex] | None = None

    async def _respond(self, question: Question) -> Answer:
        scores = await self._score(question)
        ranked = (int(place) for place in np.argsort(-scores, kind="stable"))
        talk = self.conversation
        said = (place for place in ranked if place not in self._gone and talk.turns[place].line)
        best = [*islice(said, self._config.k)]
        read = [talk.line_span(place) for place in best]
        return await self._answer(question, self._turns(sorted(best)), read=read)

    async def _score(self, question: Question) -> Scores:
        index = await asyncio.to_thread(self._index)
        about = question, self.conversation.turns, index
        return await rank_turns(*about, reranker=self._tools.reranker)

    def _index(self) -> TurnIndex:
        """The turns; indexed once, and again after a deletion.

        Questions that are asked at once wait for the first one's index.
        """
        talk = self.conversation
        with _INDEXING:
            if self._indexed is None or self._indexed[0] is not talk:
                index = TurnIndex(self._tools.required_embedder)
                index.add_turns(talk.turns, range(len(talk.turns)))
                self._indexed = talk, index
            return self._indexed[1]
