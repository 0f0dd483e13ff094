"""bge-m3 by FlagEmbedding: one model that gives three kinds of vectors at once.

Source: Chen et al., BGE M3-Embedding (2024). ``embed`` gives the dense vectors, as every embedder;
``represent`` also gives the weight of each token (sparse) and a vector for each token (multi).

    >>> sparse_score({5: 0.5, 7: 1.0}, {7: 0.5, 9: 2.0})
    0.5
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgl.models.profiles import FloatName
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.computing import computing, device, loading, number_format, readable
from mgl.retrieval.embedders.checking import unit_vectors

__all__ = ["BgeM3Embedder", "Representation", "multi_score", "sparse_score"]

_BATCH = 16


@dataclass(frozen=True, slots=True)
class Representation:
    """A text as bge-m3 sees it.

    ``dense`` has unit length; ``sparse`` holds a weight above 0 by token id; ``multi`` has a row of
    unit length a token: shape (tokens, dims).
    """

    dense: NDArray[np.float32]
    sparse: Mapping[int, float]
    multi: NDArray[np.float32]


def sparse_score(query: Mapping[int, float], text: Mapping[int, float]) -> float:
    """The products of weights, summed over the tokens that both have."""
    return sum(weight * text[token] for token, weight in query.items() if token in text)


def multi_score(query: NDArray[np.float32], text: NDArray[np.float32]) -> float:
    """The best cosine of each of the query's tokens among the text's, averaged."""
    return float((query @ text.T).max(axis=1).mean())


class BgeM3Embedder:
    """One model in memory, loaded when this is made (seconds). Safe from several threads."""

    def __init__(
        self,
        folder: Path,
        *,
        model_id: str,
        dims: int,
        max_tokens: int = 8192,
        dtype: FloatName | None = None,
    ) -> None:
        """A text is cut at ``max_tokens``; ``dtype`` as for the other embedders."""
        self.model_id = model_id
        self.dims = dims
        self._working = threading.Lock()
        with loading(folder):
            from FlagEmbedding import BGEM3FlagModel

            numbers = number_format(dtype)
            self._model: Any = BGEM3FlagModel(
                str(folder),
                devices=device(),
                use_fp16=numbers == "float16",
                use_bf16=numbers == "bfloat16",
                batch_size=_BATCH,
                query_max_length=max_tokens,
                passage_max_length=max_tokens,
            )

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        del task  # queries and passages are read alike
        raw = self._encode(texts, every=False)["dense_vecs"] if texts else []
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def represent(self, texts: Sequence[str]) -> list[Representation]:
        """All three kinds for each text; errors as ``embed``."""
        if not texts:
            return []
        raw = self._encode(texts, every=True)
        size, name = self.dims, self.model_id
        dense = unit_vectors(raw["dense_vecs"], count=len(texts), dims=size, model_id=name)
        return [
            Representation(
                vector,
                {int(token): float(weight) for token, weight in weights.items()},
                unit_vectors(rows, count=len(rows), dims=rows.shape[1], model_id=name),
            )
            for vector, weights, rows in zip(
                dense, raw["lexical_weights"], raw["colbert_vecs"], strict=True
            )
        ]

    def close(self) -> None:
        self._model = None

    def _encode(self, texts: Sequence[str], *, every: bool) -> Mapping[str, Any]:
        with self._working, computing(self.model_id):
            made: Mapping[str, Any] = self._model.encode(
                readable(texts), return_dense=True, return_sparse=every, return_colbert_vecs=every
            )
        return made
