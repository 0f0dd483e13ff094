"""Pieces of a source that are found by what stands around them, as well as by themselves.

    pieces = InContext(embedder, [turn.line for turn in turns], [turn.speaker for turn in turns])
    pieces.fused("When did Ann paint?")[:10]     # places, the best first

A turn of a conversation says little alone. Reciprocal ranks (k = 60) of five orders are added: BM25
and likeness, each of the piece and of it with the one before, and BM25 of it with two on either
side; a piece whose speaker the question names counts 1.4 times. Ours; it calls no language model.
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

__all__ = ["InContext", "after_another"]

AROUND: Final = 2
SPEAKER_WEIGHT: Final = 1.4


class InContext:
    """The pieces of one source in the orders in which questions find them."""

    def __init__(self, embedder: Embedder, lines: Sequence[str], speakers: Sequence[str]) -> None:
        """``speakers`` has for each piece who says it, "" for nobody. Embeds all, twice; blocks."""
        self._embedder = embedder
        self._speakers = speakers
        after, amid = after_another(lines), _joined(lines, AROUND, AROUND)
        self._words = [Bm25(texts) for texts in (lines, after, amid)]
        self._vectors = [embedder.embed(texts) for texts in (lines, after)]

    def alike(self, question: str) -> list[int]:
        """The places of all pieces by the likeness of their vectors, the best first."""
        return _ranked(self._vectors[0] @ self._asked(question))

    def fused(self, question: str) -> list[int]:
        """The places of all pieces by the five orders and by speaker, the best first."""
        asked = self._asked(question)
        scores = reciprocal_rank_fusion(
            [
                *(index.scores(question) for index in self._words),
                *(vectors @ asked for vectors in self._vectors),
            ]
        )
        named = {speaker for speaker in set(self._speakers) if _names(question, speaker)}
        meant = np.array([speaker in named for speaker in self._speakers], dtype=bool)
        return _ranked(np.where(meant, SPEAKER_WEIGHT, 1.0) * scores)

    def _asked(self, question: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._embedder.embed([question], task="query")[0]
        return vector


def after_another(lines: Sequence[str]) -> list[str]:
    """Each line with the one before: what is embedded besides the lines themselves."""
    return _joined(lines, 1, 0)


def _ranked(scores: NDArray[np.floating]) -> list[int]:
    return [int(place) for place in np.argsort(-scores, kind="stable")]


def _joined(lines: Sequence[str], before: int, after: int) -> list[str]:
    """Each line with so many before and after it."""
    return [
        "\n".join(lines[max(0, place - before) : place + after + 1]) for place in range(len(lines))
    ]


def _names(question: str, speaker: str) -> bool:
    names = {speaker, *speaker.split()[:1]} - {""}
    return any(re.search(rf"\b{re.escape(name)}\b", question, re.IGNORECASE) for name in names)
