"""An embedder that remembers: each text is embedded once, over runs.

    embedder = CachedEmbedder(embedder, store)

A text's vector depends on the model, the task and the text alone, so the cache is keyed by these
and never grows old. Texts come to the embedder in slices, and each slice is kept when it is done:
a run that is ended goes on there. Of several threads one embeds at a time, so all of them get the
vector that is kept, where another batch would give another last digit.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mgl.retrieval.base import Embedder, EmbeddingTask

__all__ = ["CachedEmbedder", "VectorCache"]

_SLICE = 256


class VectorCache(Protocol):
    """Where vectors are kept by model and text; ``mgl.store.Store`` is one."""

    def vectors(
        self, model_id: str, texts: Sequence[str]
    ) -> Sequence[NDArray[np.float32] | None]: ...

    def put_vectors(
        self, model_id: str, texts: Sequence[str], vectors: NDArray[np.float32]
    ) -> None: ...


class CachedEmbedder:
    """Gives what ``embedder`` would give, from ``cache`` where it is there."""

    def __init__(self, embedder: Embedder, cache: VectorCache) -> None:
        self._embedder = embedder
        self._cache = cache
        self._lock = threading.Lock()

    @property
    def model_id(self) -> str:
        return self._embedder.model_id

    @property
    def dims(self) -> int:
        return self._embedder.dims

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        with self._lock:
            return self._embed(texts, task)

    def _embed(self, texts: Sequence[str], task: EmbeddingTask) -> NDArray[np.float32]:
        key = self.model_id if task == "passage" else f"{self.model_id} as {task}"
        found = dict(zip(texts, self._cache.vectors(key, texts), strict=True))
        missing = [text for text, vector in found.items() if vector is None]
        for start in range(0, len(missing), _SLICE):
            slice_ = missing[start : start + _SLICE]
            made = self._embedder.embed(slice_, task=task)
            self._cache.put_vectors(key, slice_, made)
            found.update(zip(slice_, made, strict=True))
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            row[:] = found[text]
        return vectors

    def close(self) -> None:
        self._embedder.close()
