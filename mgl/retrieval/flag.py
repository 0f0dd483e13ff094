"""bge-m3 and bge-reranker-v2-m3 by FlagEmbedding, the library of their publisher.

    embedder = FlagEmbedder(folder, model_id="bge-m3@main", dims=1024)
    embedder.embed(["Ann met Bo in Rome."])                    # dense vectors alone
    embedder.encode(["Ann met Bo in Rome."])[0].lexical        # {token: weight}, in the same pass

Source: Chen et al., M3-Embedding (2024): one pass of the encoder gives a dense vector (of the first
token), a weight for each token (lexical) and a vector for each token (multi-vector).
``mgl.retrieval.vectors`` searches by all three. What is too long is cut at 8,192 tokens, queries as
well as passages. It needs the extra ``retrieval``; nothing is downloaded.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.errors import ResourceError
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.computing import choose_device, load_model, run_model, to_utf8
from mgl.retrieval.embedders import unit_vectors
from mgl.retrieval.multi import HEADS, Encoded, Ranking
from mgl.retrieval.rerankers import Judge

if TYPE_CHECKING:
    from mgl.models.profiles import FloatName

MOST_TOKENS: Final = 8192
_AT_ONCE: Final = 32


class FlagEmbedder:
    """bge-m3, loaded by the constructor (seconds); thread-safe.

    ``ranking`` says by what its texts are searched (``mgl.retrieval.multi``).
    """

    def __init__(
        self,
        folder: Path,
        *,
        model_id: str,
        dims: int,
        ranking: Ranking = "dense",
        dtype: FloatName | None = None,
    ) -> None:
        """``dtype`` is float16 on a GPU by default, and float32 always on a CPU.

        Raises UsageError, and ResourceError where the folder lacks the heads that ``ranking``
        needs: FlagEmbedding would draw them at random.
        """
        self.model_id = model_id
        self.dims = dims
        self.ranking: Ranking = ranking
        self._working = threading.Lock()
        if ranking != "dense" and not all((folder / name).is_file() for name in HEADS):
            raise ResourceError(
                f"{folder} lacks {' or '.join(HEADS)}: it can rank by dense vectors only",
                hint="fetch the whole repository of bge-m3, or take the ranking dense",
            )
        with load_model(folder):
            from FlagEmbedding import BGEM3FlagModel

            device = choose_device()
            self._model: Any = BGEM3FlagModel(
                str(folder),
                use_fp16=device != "cpu" and dtype in (None, "float16"),
                use_bf16=device != "cpu" and dtype == "bfloat16",
                devices=device,
            )
            self._model.tokenizer.split_special_tokens = True

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        del task  # bge-m3 takes no instruction
        found = [self._run(part, dense_only=True)["dense_vecs"] for part in _cut(texts)]
        raw = np.concatenate(found) if found else np.zeros((0, self.dims))
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def encode(self, texts: Sequence[str], *, task: EmbeddingTask = "passage") -> list[Encoded]:
        """The three representations of each text, from one pass."""
        del task
        encoded: list[Encoded] = []
        for part in _cut(texts):
            found = self._run(part, dense_only=False)
            dense = unit_vectors(
                found["dense_vecs"], count=len(part), dims=self.dims, model_id=self.model_id
            )
            for vector, weights, tokens in zip(
                dense, found["lexical_weights"], found["colbert_vecs"], strict=True
            ):
                lexical = {int(token): float(weight) for token, weight in weights.items()}
                encoded.append(Encoded(vector, lexical, np.asarray(tokens, dtype=np.float32)))
        return encoded

    def _run(self, texts: Sequence[str], *, dense_only: bool) -> dict[str, Any]:
        with self._working, run_model(self.model_id):
            found: dict[str, Any] = self._model.encode(
                to_utf8(texts),
                batch_size=_AT_ONCE + 1,  # above the number of texts it shows no progress bar
                max_length=MOST_TOKENS,
                return_sparse=not dense_only,
                return_colbert_vecs=not dense_only,
            )
        return found

    def close(self) -> None:
        self._model = None


def _cut(texts: Sequence[str]) -> list[Sequence[str]]:
    return [texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)]


def flag_reranker(folder: Path, max_tokens: int, dtype: FloatName | None = None) -> Judge:
    """Load a reranker of FlagEmbedding's, such as bge-reranker-v2-m3: P(relevant) of each text.

    Query and text together are truncated at ``max_tokens``, the query at three quarters of them.
    Raises UsageError and ResourceError.
    """
    with load_model(folder):
        from FlagEmbedding import FlagReranker

        device = choose_device()
        model: Any = FlagReranker(
            str(folder),
            use_fp16=device != "cpu" and dtype in (None, "float16"),
            devices=device,
            max_length=max_tokens,
            normalize=True,
        )
        model.tokenizer.split_special_tokens = True
    if model.model.config.num_labels != 1:
        raise ResourceError(
            f"the model in {folder} gives {model.model.config.num_labels} scores per pair, not one",
            hint="use a reranker with one label",
        )

    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        scores: list[float] = []
        for part in _cut(texts):
            pairs = [(query, text) for text in part]
            scores += model.compute_score(pairs, batch_size=_AT_ONCE + 1)
        return scores

    return judge
