"""Embedders by sentence-transformers: all-MiniLM-L6-v2, all-mpnet-base-v2, Qwen3-Embedding, others.

    embedder = SentenceEmbedder(folder, model_id="all-minilm-l6-v2@53aa51172d14", dims=384)
    embedder.embed(["Ann met Bo in Rome."]) @ embedder.embed(["Where did Ann meet Bo?"]).T

A text that is longer than the model reads is cut there, as its publisher configures it (256 tokens
for all-MiniLM-L6-v2): what follows has no part in the vector.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mgl.errors import UsageError
from mgl.models.profiles import FloatName
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.computing import computing, device, loading, number_format, readable
from mgl.retrieval.embedders.checking import unit_vectors

__all__ = ["SentenceEmbedder"]

_BATCH = 32


class SentenceEmbedder:
    """One model in memory, loaded when this is made (seconds). Safe from several threads."""

    def __init__(
        self,
        folder: Path,
        *,
        model_id: str,
        dims: int,
        query_prefix: str | None = None,
        dtype: FloatName | None = None,
    ) -> None:
        """``dims`` below the model's own cut its vectors (for models trained so: Matryoshka).

        ``query_prefix`` stands before a query; None leaves that to the folder's configuration.
        ``dtype`` is what the model computes in, by default what the device is fast in; vectors
        are float32. Raises UsageError and ResourceError.
        """
        self.model_id = model_id
        self.dims = dims
        self._query_prefix = query_prefix
        self._working = threading.Lock()
        with loading(folder):
            import torch
            from sentence_transformers import SentenceTransformer

            self._model: Any = SentenceTransformer(
                str(folder),
                device=device(),
                local_files_only=True,
                model_kwargs={"dtype": getattr(torch, number_format(dtype))},
            )
        own = self._model.get_embedding_dimension()
        if own is not None and own < dims:
            raise UsageError(
                f"{model_id} has vectors of {own} numbers, and {dims} are asked for",
                hint=f"ask for {own} or fewer",
            )

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        encode, options = self._model.encode, {}
        if task == "query" and self._query_prefix is None:
            encode = self._model.encode_query
        elif task == "query" and self._query_prefix:
            options["prompt"] = self._query_prefix
        with self._working, computing(self.model_id):
            raw = encode(readable(texts), batch_size=_BATCH, show_progress_bar=False, **options)
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def close(self) -> None:
        self._model = None
