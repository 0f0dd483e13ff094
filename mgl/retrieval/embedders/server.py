"""Embeddings by any server of the OpenAI API: ``/v1/embeddings``.

    embedder = ServerEmbedder("http://127.0.0.1:8001/v1", names=("BAAI/bge-m3",),
                              model_id="bge-m3@main+openai", dims=1024)

Several requests are in flight at once. A text that the server finds too long is halved until it
fits, since servers cut nothing and say their limits in tokens; ``dims`` below the model's own cut
its vectors here, whatever the server can. A server that answered before and is away is waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from mgl.errors import ContextOverflow, EngineRejected
from mgl.llm.concurrency import Portal, Retries
from mgl.llm.engines.server import Http, identify
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.computing import readable
from mgl.retrieval.embedders.checking import unit_vectors

__all__ = ["ServerEmbedder"]

_BATCH = 64
_IN_FLIGHT = 4
_ANSWER_S = 600.0
_OUTAGE_S, _PAUSE_S = 300.0, 0.5


class _Item(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_Item]


class ServerEmbedder:
    """A model behind a URL; it is looked for with the first text. Safe from several threads.

    ``names`` are what the server may call the model. Raises the EngineError family.
    """

    def __init__(
        self,
        base_url: str,
        *,
        names: Sequence[str],
        model_id: str,
        dims: int,
        query_prefix: str = "",
        api_key: str | None = None,
    ) -> None:
        self.model_id = model_id
        self.dims = dims
        self._names = names
        self._query_prefix = query_prefix
        self._http = Http(base_url, api_key)
        self._served: str | None = None
        self._portal = Portal()

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        prefix = self._query_prefix if task == "query" else ""
        sent = [f"{prefix}{text}" for text in readable(texts)]
        raw = self._portal.run(lambda: self._all(sent))
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def close(self) -> None:
        self._portal.run(self._http.aclose)
        self._portal.close()

    async def _all(self, texts: Sequence[str]) -> list[list[float]]:
        if texts and self._served is None:
            self._served = (await identify(self._http, self._names)).model
        slots = asyncio.Semaphore(_IN_FLIGHT)

        async def some(batch: Sequence[str]) -> list[list[float]]:
            async with slots:
                return await self._fitting(batch)

        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        made = await asyncio.gather(*map(some, batches))
        return [vector for part in made for vector in part]

    async def _fitting(self, texts: Sequence[str]) -> list[list[float]]:
        """The vectors of a batch; what is too long for the server is cut until it fits."""
        try:
            return await self._ask(texts)
        except ContextOverflow:
            if len(texts) > 1:
                middle = len(texts) // 2
                first = await self._fitting(texts[:middle])
                return first + await self._fitting(texts[middle:])
            if len(texts[0]) < 2:
                raise
            return await self._fitting([texts[0][: len(texts[0]) // 2]])

    async def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        body = {"model": self._served, "input": list(texts), "encoding_format": "float"}
        answer = await Retries(_OUTAGE_S, _PAUSE_S).run(
            lambda: self._http.post("embeddings", body, limit_s=_ANSWER_S)
        )
        try:
            items = sorted(_Answer.model_validate(answer).data, key=lambda item: item.index)
        except ValidationError as error:
            raise self._unusable() from error
        if [item.index for item in items] != list(range(len(texts))):
            raise self._unusable()
        return [item.embedding for item in items]

    def _unusable(self) -> EngineRejected:
        return EngineRejected(
            f"what the server gave for {self.model_id} are not the embeddings of the texts",
            hint="point the URL at an OpenAI-compatible server that serves an embedding model",
        )
