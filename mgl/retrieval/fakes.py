"""An embedder and a reranker without a model, for tests and demonstrations.

    >>> embedder = WordEmbedder()
    >>> met, lost = embedder.embed(["Ann met Bo.", "The ring was lost."])
    >>> asked = embedder.embed(["Who lost rings?"], task="query")[0]
    >>> bool(asked @ lost > asked @ met)
    True

They know words by their stems, and no meaning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.lexical import stems

_FLOOR = 1e-3  # so that a text without words has a direction


class WordEmbedder:
    """Texts that share stems are alike. ``embedded`` keeps what was asked for, in order."""

    def __init__(self, dims: int = 64) -> None:
        self.model_id = f"fake/words:{dims}"
        self.dims = dims
        self.embedded: list[str] = []

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        del task
        self.embedded.extend(texts)
        made = np.full((len(texts), self.dims), _FLOOR, dtype=np.float32)
        for row, text in zip(made, texts, strict=True):
            for stem in stems(text):
                digest = hashlib.sha256(stem.encode("utf-8", "surrogatepass")).digest()
                row[int.from_bytes(digest[:4], "big") % self.dims] += 1
        unit: NDArray[np.float32] = made / np.linalg.norm(made, axis=1, keepdims=True)
        return unit

    def close(self) -> None:
        pass


class WordReranker:
    """The share of a query's stems that a text has."""

    model_id = "fake/words"

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        asked = set(stems(query)) or {""}
        shares = [len(asked & set(stems(text))) / len(asked) for text in texts]
        return np.array(shares, dtype=np.float32)

    async def aclose(self) -> None:
        pass
