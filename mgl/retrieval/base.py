"""The seams of retrieval: what turns texts into vectors, what judges them, and what is found.

Embedders block and are cheap to call; rerankers may be a language model, so they are awaited.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Ids = Collection[int] | NDArray[np.int64]

EmbeddingTask = Literal["query", "passage"]


@dataclass(frozen=True, slots=True)
class Hit:
    """An item that was found; a higher ``score`` is better, on the scale of what found it."""

    id: int
    score: float


class Embedder(Protocol):
    """Texts to vectors. ``model_id`` names weights, revision and dimensions: caches and indexes
    are keyed by it."""

    @property
    def model_id(self) -> str: ...

    @property
    def dims(self) -> int: ...

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        """One finite vector of unit length a text: shape (n, dims). Blocks."""
        ...

    def close(self) -> None: ...


class Reranker(Protocol):
    """How well each text answers a query, read together with it."""

    @property
    def model_id(self) -> str: ...

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """P(relevant) of each text, 0 to 1: shape (n,)."""
        ...

    async def aclose(self) -> None: ...
