"""Rerankers that run in this process: a model is loaded with the first texts to be judged.

A ``Judge`` is what a library makes of a query and texts; ``LocalReranker`` runs it beside the
event loop, one call at a time, and holds it to probabilities.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mgl.errors import EngineRejected
from mgl.retrieval.computing import computing, readable

__all__ = ["Judge", "LocalReranker", "probabilities"]

Judge = Callable[[str, Sequence[str]], ArrayLike]
"""P(relevant) of each text for a query, in the order of the texts."""


class LocalReranker:
    """A judge that ``load`` makes with the first call, which raises what ``load`` raises."""

    def __init__(self, load: Callable[[], Judge], *, model_id: str) -> None:
        self.model_id = model_id
        self._load = load
        self._judge: Judge | None = None
        self._working = threading.Lock()

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros(0, dtype=np.float32)
        return await asyncio.to_thread(self._scores, query, texts)

    async def aclose(self) -> None:
        await asyncio.to_thread(self._forget)

    def _scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        with self._working:
            if self._judge is None:
                self._judge = self._load()
            (asked,) = readable([query])
            with computing(self.model_id):
                raw = self._judge(asked, readable(texts))
        return probabilities(raw, count=len(texts), model_id=self.model_id)

    def _forget(self) -> None:
        with self._working:
            self._judge = None


def probabilities(raw: ArrayLike, *, count: int, model_id: str) -> NDArray[np.float32]:
    """``count`` numbers from 0 to 1; EngineRejected where they are not."""
    found = np.asarray(raw, dtype=np.float32)
    if found.shape != (count,) or not ((found >= 0) & (found <= 1)).all():
        raise EngineRejected(
            f"{model_id} gave no probability for each of {count} texts",
            hint="check that the model is a reranker; in float16 some overflow: use float32",
        )
    return found
