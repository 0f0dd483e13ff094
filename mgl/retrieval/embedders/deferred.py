"""An embedder that starts with the first text that has to be embedded.

What it is called and how long its vectors are is known before: a run whose vectors are all in the
cache needs neither weights nor a library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder, EmbeddingTask

__all__ = ["DeferredEmbedder"]


class DeferredEmbedder:
    """``start`` makes the real embedder, once; what it raises, the first call raises."""

    def __init__(self, start: Callable[[], Embedder], *, model_id: str, dims: int) -> None:
        self.model_id = model_id
        self.dims = dims
        self._start = start
        self._embedder: Embedder | None = None
        self._starting = threading.Lock()

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        with self._starting:
            if self._embedder is None:
                self._embedder = self._start()
        return self._embedder.embed(texts, task=task)

    def close(self) -> None:
        with self._starting:
            if self._embedder is not None:
                self._embedder.close()
                self._embedder = None
