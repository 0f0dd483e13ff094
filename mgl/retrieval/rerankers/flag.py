"""bge rerankers by FlagEmbedding: bge-reranker-v2-m3.

reranker = LocalReranker(lambda: flag_reranker(folder), model_id="bge-reranker-v2-m3@main")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from mgl.models.profiles import FloatName
from mgl.retrieval.computing import device, loading, number_format
from mgl.retrieval.rerankers.local import Judge

__all__ = ["flag_reranker"]

_BATCH = 32


def flag_reranker(folder: Path, max_tokens: int, dtype: FloatName | None = None) -> Judge:
    """The folder's model, loaded; query and text together are cut at ``max_tokens``.

    The library computes in float16 or float32: float32 stands in for bfloat16. Raises UsageError
    and ResourceError.
    """
    with loading(folder):
        from FlagEmbedding import FlagReranker

        model: Any = FlagReranker(
            str(folder),
            devices=device(),
            use_fp16=number_format(dtype) == "float16",
            batch_size=_BATCH,
            max_length=max_tokens,
            normalize=True,
        )

    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        scores: ArrayLike = model.compute_score([(query, text) for text in texts])
        return scores

    return judge
