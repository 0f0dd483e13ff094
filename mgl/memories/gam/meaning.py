"""P_sem without a cross-encoder: how likely a turn is meant, by words in context and by likeness.

Ours, for ``meaning: context``. A turn of a conversation says little alone, and is found by what is
said around it: BM25 reads it with two turns on either side, an embedder reads it alone. Names of
speakers are taken out of the question: they are the role indicator's business, and turns hardly
hold them. Both scores are standardised over the candidates and added; a softmax of the sum over
``TEMPERATURE`` is P_sem, in whose scale a β of 1.4 is worth 3.4 standard deviations of one score.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder
from mgl.retrieval.bm25 import Bm25
from mgl.retrieval.likeness import likeness
from mgl.types import Turn

__all__ = ["TEMPERATURE", "Contexts", "without_names"]

AROUND = 2  # turns on either side
TEMPERATURE = 10.0
_Scores = NDArray[np.float64]


class Contexts:
    """The turns of a conversation as they are at one moment, each with those around it."""

    def __init__(self, turns: Sequence[Turn], gone: Collection[int]) -> None:
        texts = ["" if place in gone else turn.text for place, turn in enumerate(turns)]
        self._lines = [turn.line for turn in turns]
        sessions = [turn.session for turn in turns]
        self._index = Bm25(
            [
                " ".join(
                    texts[near]
                    for near in range(max(0, place - AROUND), min(len(turns), place + AROUND + 1))
                    if sessions[near] == sessions[place]
                )
                for place in range(len(turns))
            ]
        )

    async def likely(
        self, embedder: Embedder, question: str, speakers: Collection[str], numbers: Sequence[int]
    ) -> _Scores:
        """P(meant) of each of some turns, which sum to 1: shape (n,)."""
        if not numbers:
            return np.zeros(0)
        asked = without_names(question, speakers) or question
        words = self._index.scores(asked)[list(numbers)]
        alike = await likeness(embedder, asked, [self._lines[number] for number in numbers])
        scores = (_standardised(words) + _standardised(alike)) / TEMPERATURE
        weights = np.exp(scores - scores.max())
        total: _Scores = weights / weights.sum()
        return total


def without_names(question: str, speakers: Collection[str]) -> str:
    """A question without the names of speakers: "When did Ann paint?" asks "When did paint?"."""
    names = sorted({name for speaker in speakers for name in (speaker, *speaker.split()[:1])})
    for name in sorted(names, key=len, reverse=True):
        question = re.sub(rf"\b{re.escape(name)}(?:['’]s)?(?!\w)", " ", question)
    return " ".join(question.split())


def _standardised(scores: NDArray[np.float32]) -> _Scores:
    wide = scores.astype(np.float64)
    centred: _Scores = (wide - wide.mean()) / (wide.std() + 1e-9)
    return centred
