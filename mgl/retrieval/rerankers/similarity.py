"""P(relevant) from an embedder alone: the cosine of query and text through a fitted sigmoid.

    P = 1 / (1 + exp(-(slope · cosine + offset)))

It orders texts as the cosine does; what it adds is a scale on which it can be multiplied with other
judgements. Fitted by logistic regression on the five development conversations of LoCoMo: the 760
questions of categories 1 to 4 that name evidence turns, each with the 30 turns of highest cosine,
of which 3% are evidence. Fitted on four conversations and read on the fifth, the log loss is within
0.01 of a fit on the fifth itself. On other texts the share of relevant ones differs, and with it
the offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder
from mgl.retrieval.ranking import likeness

__all__ = ["FITTED", "Sigmoid", "SimilarityReranker"]


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """Cosine to probability."""

    slope: float
    offset: float

    def __call__(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        return np.asarray(1 / (1 + np.exp(-(self.slope * cosines + self.offset))), np.float32)


FITTED: Final[Mapping[str, Sigmoid]] = {
    "all-minilm-l6-v2": Sigmoid(8.1, -7.7),
    "all-mpnet-base-v2": Sigmoid(9.7, -8.0),
}
"""By profile: among the best 30, a turn at cosine 0.5 is evidence in 3% (MiniLM) and 4% (mpnet)."""

_UNFITTED: Final = Sigmoid(8.9, -7.9)  # between the two


class SimilarityReranker:
    """Judges by an embedder, which stays the caller's: ``aclose`` leaves it open.

    The sigmoid is the one fitted for the embedder's profile; for another embedder it lies between
    those, and ``model_id`` says so.
    """

    def __init__(self, embedder: Embedder, sigmoid: Sigmoid | None = None) -> None:
        self._embedder = embedder
        fitted = sigmoid or FITTED.get(embedder.model_id.split("@")[0])
        self._sigmoid = fitted or _UNFITTED
        self._label = "similarity" if fitted else "similarity, unfitted"

    @property
    def model_id(self) -> str:
        return f"{self._embedder.model_id} by {self._label}"

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._sigmoid(await likeness(self._embedder, query, texts))

    async def aclose(self) -> None:
        pass
