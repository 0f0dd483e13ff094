"""The reranker where there is none: texts keep the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["IdentityReranker"]


class IdentityReranker:
    """Falls evenly from 1 for the first text to 1/n for the last, whatever they say."""

    model_id = "identity"

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        del query
        return np.linspace(1, 0, len(texts), endpoint=False, dtype=np.float32)

    async def aclose(self) -> None:
        pass
