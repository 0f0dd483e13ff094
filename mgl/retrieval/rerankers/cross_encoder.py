"""Cross-encoders by sentence-transformers: ms-marco-MiniLM and others of one score a pair.

reranker = LocalReranker(lambda: cross_encoder(folder), model_id="ms-marco-minilm-l-6-v2@main")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from mgl.errors import ResourceError
from mgl.models.profiles import FloatName
from mgl.retrieval.computing import device, loading, number_format
from mgl.retrieval.rerankers.local import Judge

__all__ = ["cross_encoder"]

_BATCH = 32


def cross_encoder(folder: Path, dtype: FloatName | None = None) -> Judge:
    """The folder's model, loaded; its score of a pair is a logit, made a probability.

    Raises UsageError and ResourceError.
    """
    with loading(folder):
        import torch
        from sentence_transformers import CrossEncoder

        model: Any = CrossEncoder(
            str(folder),
            device=device(),
            local_files_only=True,
            model_kwargs={"dtype": getattr(torch, number_format(dtype))},
            activation_fn=torch.nn.Sigmoid(),
        )
    if model.num_labels != 1:
        raise ResourceError(
            f"the model in {folder} gives {model.num_labels} scores a pair, and one is needed",
            hint="use a cross-encoder that was trained for retrieval, with one label",
        )

    def judge(query: str, texts: Sequence[str]) -> ArrayLike:
        pairs = [(query, text) for text in texts]
        scores: ArrayLike = model.predict(pairs, batch_size=_BATCH, show_progress_bar=False)
        return scores

    return judge
