"""What every embedder's vectors have to be: finite, of one length, none of them zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.errors import EngineRejected

__all__ = ["unit_vectors"]


def unit_vectors(raw: ArrayLike, *, count: int, dims: int, model_id: str) -> NDArray[np.float32]:
    """``count`` vectors cut to their first ``dims`` numbers, at unit length.

    Raises EngineRejected where there are more or fewer vectors, where they are shorter than
    ``dims``, and where one holds NaN or an infinity or is zero: such a vector has no direction.
    """
    if count == 0:
        return np.zeros((0, dims), dtype=np.float32)
    vectors = np.asarray(raw, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != count or vectors.shape[1] < dims:
        raise EngineRejected(
            f"{model_id} gave vectors of shape {vectors.shape} for {count} texts of {dims} dims",
            hint="check that the model is the one that is meant, and its dims in the profile",
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
