"""What plain retrieval over the turns of a conversation finds, without a graph or a model's call.

    floors = TurnFloors(embedder, conversation.turns)
    floors.embedding("When did Ann paint?")[:10]     # ids of turns, the best first

A memory that reads conversations has to find more of the evidence than ``fused`` does. Reciprocal
ranks (k = 60) of five orders are added: BM25 and likeness, each of the turn and of it with the one
before, and BM25 of it with two on either side; a turn whose speaker the question names counts 1.4
times. Ours; no session is cut off from the next.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder
from mgl.retrieval.bm25 import Bm25
from mgl.retrieval.fuse import reciprocal_rank_fusion
from mgl.types import Turn

__all__ = ["TurnFloors"]

AROUND: Final = 2
SPEAKER_WEIGHT: Final = 1.4


class TurnFloors:
    """The turns of a conversation in the orders in which questions find them."""

    def __init__(self, embedder: Embedder, turns: Sequence[Turn]) -> None:
        """Embeds all turns, twice; blocks."""
        self._embedder = embedder
        self._turns = turns
        own, after, amid = (_joined(turns, *around) for around in ((0, 0), (1, 0), (AROUND,) * 2))
        self._words = [Bm25(texts) for texts in (own, after, amid)]
        self._vectors = [embedder.embed(texts) for texts in (own, after)]

    def embedding(self, question: str) -> list[str]:
        """The ids of all turns by the likeness of their embeddings, the best first."""
        return self._ranked(self._vectors[0] @ self._asked(question))

    def fused(self, question: str) -> list[str]:
        """The ids of all turns by the five orders and by speaker, the best first."""
        asked = self._asked(question)
        scores = reciprocal_rank_fusion(
            [
                *(index.scores(question) for index in self._words),
                *(vectors @ asked for vectors in self._vectors),
            ]
        )
        meant = np.array([_names(question, turn.speaker) for turn in self._turns], dtype=bool)
        return self._ranked(np.where(meant, SPEAKER_WEIGHT, 1.0) * scores)

    def _asked(self, question: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._embedder.embed([question], task="query")[0]
        return vector

    def _ranked(self, scores: NDArray[np.floating]) -> list[str]:
        return [self._turns[int(place)].id for place in np.argsort(-scores, kind="stable")]


def _joined(turns: Sequence[Turn], before: int, after: int) -> list[str]:
    """Each turn with so many before and after it."""
    lines = [turn.line for turn in turns]
    return [
        "\n".join(lines[max(0, place - before) : place + after + 1]) for place in range(len(lines))
    ]


def _names(question: str, speaker: str) -> bool:
    names = {speaker, *speaker.split()[:1]} - {""}
    return any(re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE) for name in names)
