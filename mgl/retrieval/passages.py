"""Passages of one text, ranked for a question by words and by meaning; no model is called.

BM25 and the cosine, each standardised over the passages, are added. Ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder
from mgl.retrieval.lexical import LexicalIndex

ROUNDING = 1e-6  # of float32, in which scores are computed


class PassageIndex:
    """Passages in the order of their text. Making it embeds all of them, and blocks."""

    def __init__(self, embedder: Embedder, texts: Sequence[str]) -> None:
        self._embedder = embedder
        self._words = LexicalIndex.of(texts)
        self._vectors = embedder.embed(texts) if texts else np.zeros((0, embedder.dims))

    def scores(self, question: str) -> NDArray[np.float64]:
        """Score every passage; higher is better. Embeds the question, and blocks."""
        if not len(self._words):
            return np.zeros(0)
        asked = self._embedder.embed([question], task="query")[0]
        return standardize(self._words.scores(question)) + standardize(self._vectors @ asked)


def standardize(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Scale to mean 0 and standard deviation 1; all 0 where they differ by rounding alone."""
    values = scores.astype(np.float64)
    spread = values.std()
    if spread <= ROUNDING * np.abs(values).max(initial=0.0):
        return np.zeros(len(values))
    scaled: NDArray[np.float64] = (values - values.mean()) / spread
    return scaled
