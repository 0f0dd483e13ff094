"""Embedders: sentence-transformers' models in this process, deferred and cached.

    embedder = SentenceEmbedder(folder, model_id="all-minilm-l6-v2@53aa51172d14", dims=384)
    embedder.embed(["Ann met Bo in Rome."]) @ embedder.embed(["Where did Ann meet Bo?"]).T

A text longer than the model reads is truncated, at the publisher's limit (256 tokens for
all-MiniLM-L6-v2). ``mgl.retrieval.servers`` has the embedder behind a URL.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.errors import EngineRejected, UsageError
from mgl.retrieval.base import Embedder, EmbeddingTask
from mgl.retrieval.computing import choose_device, choose_dtype, load_model, run_model, to_utf8
from mgl.retrieval.multi import PARTS, Encoded, Ranking, ranks_by_more

if TYPE_CHECKING:
    from mgl.models.profiles import FloatName


def unit_vectors(raw: ArrayLike, *, count: int, dims: int, model_id: str) -> NDArray[np.float32]:
    """Truncate ``count`` vectors to ``dims`` numbers and scale them to unit length.

    Raises EngineRejected where their number or length is wrong, or one is zero or not finite.
    """
    if count == 0:
        return np.zeros((0, dims), dtype=np.float32)
    vectors = np.asarray(raw, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] < dims:
        raise EngineRejected(
            f"{model_id} gave vectors of shape {vectors.shape} for {count} texts of {dims} dims",
            hint="check the name of the model, and its dims in the profile",
        )
    cut = vectors[:, :dims].astype(np.float64)
    lengths = np.linalg.norm(cut, axis=1)
    wrong = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0))
    if len(wrong):
        values = "is zero" if lengths[wrong[0]] == 0 else "holds numbers that are not finite"
        raise EngineRejected(
            f"{model_id} gave no usable vector for {len(wrong)} of {count} texts: number "
            f"{wrong[0]} {values}",
            hint="float16 overflows in some models: compute in float32, or fetch the weights anew",
        )
    return np.asarray(cut / lengths[:, None], dtype=np.float32)


_SLICE = 256


class VectorCache(Protocol):
    """Keeps vectors by model and text, as ``mgl.store.Store`` does."""

    def vectors(
        self, model_id: str, texts: Sequence[str]
    ) -> Sequence[NDArray[np.float32] | None]: ...

    def put_vectors(
        self,
        model_id: str,
        texts: Sequence[str],
        vectors: Sequence[NDArray[np.float32]] | NDArray[np.float32],
    ) -> None: ...


class CachedEmbedder:
    """Embeds each text once, over runs: vectors come from ``cache`` where it has them.

    The cache is keyed by model, task and text, so it never goes stale. Texts are embedded in slices
    of 256, each kept when it is done, so an interrupted run resumes there. One thread embeds at a
    time: batches differ in the last digit, and every caller gets the vector that is kept.
    """

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

    @property
    def ranking(self) -> Ranking:
        return self._embedder.ranking if ranks_by_more(self._embedder) else "dense"

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        key = self.model_id if task == "passage" else f"{self.model_id} as {task}"
        with self._lock:
            found = dict(zip(texts, self._cache.vectors(key, texts), strict=True))
            missing = [text for text, vector in found.items() if vector is None]
            for start in range(0, len(missing), _SLICE):
                slice_ = missing[start : start + _SLICE]
                vectors = self._embedder.embed(slice_, task=task)
                self._cache.put_vectors(key, slice_, vectors)
                found.update(zip(slice_, vectors, strict=True))
        vectors = np.zeros((len(texts), self.dims), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            row[:] = found[text]
        return vectors

    def encode(self, texts: Sequence[str], *, task: EmbeddingTask = "passage") -> list[Encoded]:
        """The three representations of each text, for an embedder that makes them."""
        assert ranks_by_more(self._embedder)
        key = self.model_id if task == "passage" else f"{self.model_id} as {task}"
        keys = (key, *(f"{key} {part}" for part in PARTS))
        with self._lock:
            kept = zip(*(self._cache.vectors(each, texts) for each in keys), strict=True)
            found = dict(zip(texts, kept, strict=True))
            missing = [text for text, parts in found.items() if any(part is None for part in parts)]
            for start in range(0, len(missing), _SLICE):
                slice_ = missing[start : start + _SLICE]
                parts = [one.pack() for one in self._embedder.encode(slice_, task=task)]
                for each, own in zip(keys, zip(*parts, strict=True), strict=True):
                    self._cache.put_vectors(each, slice_, own)
                found.update(zip(slice_, parts, strict=True))
        return [Encoded.unpack(*found[text]) for text in texts]

    def close(self) -> None:
        self._embedder.close()


class DeferredEmbedder:
    """Loads the embedder with the first text, by ``start``; raises what that raises.

    Its name and dimensions are known before, so a run whose vectors are all cached needs neither
    weights nor a library.
    """

    def __init__(
        self,
        start: Callable[[], Embedder],
        *,
        model_id: str,
        dims: int,
        ranking: Ranking = "dense",
    ) -> None:
        self.model_id = model_id
        self.dims = dims
        self.ranking: Ranking = ranking
        self._start = start
        self._embedder: Embedder | None = None
        self._starting = threading.Lock()

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dims), dtype=np.float32)
        return self._ensure_started().embed(texts, task=task)

    def encode(self, texts: Sequence[str], *, task: EmbeddingTask = "passage") -> list[Encoded]:
        """The three representations of each text, for an embedder that makes them."""
        embedder = self._ensure_started()
        assert ranks_by_more(embedder)
        return embedder.encode(texts, task=task)

    def _ensure_started(self) -> Embedder:
        with self._starting:
            if self._embedder is None:
                self._embedder = self._start()
            return self._embedder

    def close(self) -> None:
        with self._starting:
            if self._embedder is not None:
                self._embedder.close()
                self._embedder = None


class SentenceEmbedder:
    """A model of sentence-transformers, loaded by the constructor (seconds); thread-safe."""

    def __init__(
        self,
        folder: Path,
        *,
        model_id: str,
        dims: int,
        query_prefix: str | None = None,
        dtype: FloatName | None = None,
    ) -> None:
        """``dims`` below the model's own truncates its vectors (Matryoshka models).

        ``query_prefix`` precedes a query; None leaves that to the folder's configuration.
        ``dtype`` is what the model computes in, by default the fastest on this device; vectors
        are float32. Raises UsageError and ResourceError.
        """
        self.model_id = model_id
        self.dims = dims
        self._query_prefix = query_prefix
        self._working = threading.Lock()
        with load_model(folder):
            import torch
            from sentence_transformers import SentenceTransformer

            self._model: Any = SentenceTransformer(
                str(folder),
                device=choose_device(),
                local_files_only=True,
                model_kwargs={"dtype": getattr(torch, choose_dtype(dtype))},
                processor_kwargs={"split_special_tokens": True},
            )
        own = self._model.get_embedding_dimension()
        if own is not None and own < dims:
            raise UsageError(
                f"{model_id} has vectors of {own} numbers, not {dims}",
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
        with self._working, run_model(self.model_id):
            raw = encode(to_utf8(texts), batch_size=32, show_progress_bar=False, **options)
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def close(self) -> None:
        self._model = None
