"""Embedding and reranking by a server with OpenAI's API.

    embedder = ServerEmbedder("http://127.0.0.1:8001/v1", names=("BAAI/bge-m3",),
                              model_id="bge-m3@main+openai", dims=1024)

A server that answered before and is away is waited for, up to five minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from mgl.errors import ContextOverflow, EngineRejected
from mgl.llm.concurrency import Portal, Retries
from mgl.llm.engines.server import Http, Server, identify
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.computing import to_utf8
from mgl.retrieval.embedders import unit_vectors
from mgl.retrieval.rerankers import check_probabilities

__all__ = ["ServerEmbedder", "ServerReranker"]

_BATCH = 64
_IN_FLIGHT = 4
_ANSWER_S = 600.0
_OUTAGE_S, _PAUSE_S = 300.0, 0.5


class _Item(BaseModel):
    index: int
    embedding: list[float]


class _Embeddings(BaseModel):
    data: list[_Item]


class ServerEmbedder:
    """An embedding model behind ``/v1/embeddings``; thread-safe.

    ``names`` are what the server may call the model, which is looked for with the first text. Up to
    four requests are in flight. A text too long for the server is halved until it fits, since
    servers truncate nothing; ``dims`` below the model's own truncates its vectors here. Raises the
    EngineError family.
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
        sent = [f"{prefix}{text}" for text in to_utf8(texts)]
        raw = self._portal.run(lambda: self._embed_all(sent))
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def close(self) -> None:
        self._portal.run(self._http.aclose)
        self._portal.close()

    async def _embed_all(self, texts: Sequence[str]) -> list[list[float]]:
        if texts and self._served is None:
            self._served = (await identify(self._http, self._names)).model
        slots = asyncio.Semaphore(_IN_FLIGHT)

        async def embed_batch(batch: Sequence[str]) -> list[list[float]]:
            async with slots:
                return await self._embed_fitting(batch)

        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        made = await asyncio.gather(*map(embed_batch, batches))
        return [vector for part in made for vector in part]

    async def _embed_fitting(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed a batch, halving what is too long for the server until it fits."""
        try:
            return await self._ask(texts)
        except ContextOverflow:
            if len(texts) > 1:
                middle = len(texts) // 2
                first = await self._embed_fitting(texts[:middle])
                return first + await self._embed_fitting(texts[middle:])
            if len(texts[0]) < 2:
                raise
            return await self._embed_fitting([texts[0][: len(texts[0]) // 2]])

    async def _ask(self, texts: Sequence[str]) -> list[list[float]]:
        body = {"model": self._served, "input": list(texts), "encoding_format": "float"}
        answer = await Retries(_OUTAGE_S, _PAUSE_S).run(
            lambda: self._http.post("embeddings", body, limit_s=_ANSWER_S)
        )
        try:
            items = sorted(_Embeddings.model_validate(answer).data, key=lambda item: item.index)
        except ValidationError as error:
            raise self._unusable() from error
        if [item.index for item in items] != list(range(len(texts))):
            raise self._unusable()
        return [item.embedding for item in items]

    def _unusable(self) -> EngineRejected:
        return EngineRejected(
            f"the server's reply for {self.model_id} is not one embedding per text",
            hint="point the URL at an OpenAI-compatible server that serves an embedding model",
        )


class _Result(BaseModel):
    index: int
    relevance_score: float


class _Ranking(BaseModel):
    results: list[_Result]


class ServerReranker:
    """A reranking model behind ``/v1/rerank``, as vLLM, llama.cpp, TEI's peers and Jina have it.

    ``names`` are what the server may call the model, which is looked for with the first texts. Most
    servers answer with probabilities; llama.cpp's logits become such. Raises the EngineError
    family.
    """

    def __init__(
        self, base_url: str, *, names: Sequence[str], model_id: str, api_key: str | None = None
    ) -> None:
        self.model_id = model_id
        self._names = names
        self._http = Http(base_url, api_key)
        self._server: Server | None = None

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros(0, dtype=np.float32)
        if self._server is None:
            self._server = await identify(self._http, self._names)
        server, (asked, *sent) = self._server, to_utf8([query, *texts])
        batches = [sent[start : start + _BATCH] for start in range(0, len(sent), _BATCH)]
        parts = await asyncio.gather(*(self._ask(server.model, asked, part) for part in batches))
        found = np.concatenate(parts)
        if server.kind == "llama.cpp":
            found = 1 / (1 + np.exp(-found))
        return check_probabilities(found, count=len(texts), model_id=self.model_id)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _ask(self, model: str, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """Fetch the server's own scores, in the order of the texts."""
        body = {"model": model, "query": query, "documents": list(texts), "top_n": len(texts)}
        answer = await Retries(_OUTAGE_S, _PAUSE_S).run(
            lambda: self._http.post("rerank", body, limit_s=_ANSWER_S)
        )
        try:
            results = sorted(_Ranking.model_validate(answer).results, key=lambda one: one.index)
        except ValidationError as error:
            raise self._unusable() from error
        if [one.index for one in results] != list(range(len(texts))):
            raise self._unusable()
        return np.array([one.relevance_score for one in results])

    def _unusable(self) -> EngineRejected:
        return EngineRejected(
            f"the server's reply for {self.model_id} is not one score per text",
            hint="point the URL at a server that serves a reranking model under /v1/rerank",
        )
