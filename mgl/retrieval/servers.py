"""Embedding and reranking by a server with OpenAI's API.

    embedder = ServerEmbedder("http://127.0.0.1:8001/v1", names=("BAAI/bge-m3",),
                              model_id="bge-m3@main+openai", dims=1024)

A server that answered before and is away is waited for, up to five minutes. Control tokens in texts
(``[SEP]``) are sent with a mark in them, which makes them text (``mgl.llm.control``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AliasChoices, BaseModel, Field, ValidationError

from mgl.errors import ContextOverflow, EngineRejected
from mgl.llm.concurrency import Portal, Retries
from mgl.llm.control import ControlTokens
from mgl.openai.servers import Http, Server, identify
from mgl.retrieval.base import EmbeddingTask
from mgl.retrieval.computing import to_utf8
from mgl.retrieval.embedders import unit_vectors
from mgl.retrieval.rerankers import check_probabilities

_BATCH = 64
_IN_FLIGHT = 4
_ANSWER_S = 600.0
_OUTAGE_S, _PAUSE_S = 300.0, 0.5
_CONTROL = ControlTokens(families=True)


class _Item(BaseModel):
    index: int


class _Embedding(_Item):
    embedding: list[float]


class _Score(_Item):
    relevance_score: float


ItemT = TypeVar("ItemT", bound=_Item)


class _Reply(BaseModel, Generic[ItemT]):
    items: list[ItemT] = Field(validation_alias=AliasChoices("data", "results"))


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
        self._query_prefix = query_prefix
        self._served = _Served(Http(base_url, api_key), names, model_id)
        self._portal = Portal()

    def embed(
        self, texts: Sequence[str], *, task: EmbeddingTask = "passage"
    ) -> NDArray[np.float32]:
        prefix = self._query_prefix if task == "query" else ""
        sent = [f"{prefix}{_CONTROL.spell(text)}" for text in to_utf8(texts)]
        raw = self._portal.run(lambda: self._embed_all(sent))
        return unit_vectors(raw, count=len(texts), dims=self.dims, model_id=self.model_id)

    def close(self) -> None:
        self._portal.run(self._served.http.aclose)
        self._portal.close()

    async def _embed_all(self, texts: Sequence[str]) -> list[list[float]]:
        slots = asyncio.Semaphore(_IN_FLIGHT)

        async def embed_batch(batch: Sequence[str]) -> list[list[float]]:
            async with slots:
                return await self._embed_fitting(batch)

        if texts:
            await self._served.find()
        batches = [texts[start : start + _BATCH] for start in range(0, len(texts), _BATCH)]
        made = await asyncio.gather(*map(embed_batch, batches))
        return [vector for part in made for vector in part]

    async def _embed_fitting(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed a batch, halving what is too long for the server until it fits."""
        body = {"input": list(texts), "encoding_format": "float"}
        try:
            answer = await self._served.ask("embeddings", body, _Reply[_Embedding], len(texts))
        except ContextOverflow:
            if len(texts) > 1:
                middle = len(texts) // 2
                first = await self._embed_fitting(texts[:middle])
                return first + await self._embed_fitting(texts[middle:])
            if len(texts[0]) < 2:
                raise
            return await self._embed_fitting([texts[0][: len(texts[0]) // 2]])
        return [item.embedding for item in answer]


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
        self._served = _Served(Http(base_url, api_key), names, model_id)

    async def scores(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros(0, dtype=np.float32)
        server = await self._served.find()
        asked, *sent = map(_CONTROL.spell, to_utf8([query, *texts]))

        async def score(batch: Sequence[str]) -> list[float]:
            body = {"query": asked, "documents": list(batch), "top_n": len(batch)}
            answer = await self._served.ask("rerank", body, _Reply[_Score], len(batch))
            return [result.relevance_score for result in answer]

        batches = [sent[start : start + _BATCH] for start in range(0, len(sent), _BATCH)]
        found = np.concatenate(await asyncio.gather(*map(score, batches)))
        if server.kind == "llama.cpp":
            found = 1 / (1 + np.exp(-found))
        return check_probabilities(found, count=len(texts), model_id=self.model_id)

    async def aclose(self) -> None:
        await self._served.http.aclose()


@dataclass
class _Served:
    """A model on a server, which is looked for once."""

    http: Http
    names: Sequence[str]
    model_id: str
    server: Server | None = None

    async def find(self) -> Server:
        self.server = self.server or await identify(self.http, self.names)
        return self.server

    async def ask(
        self, path: str, body: Mapping[str, Any], shape: type[_Reply[ItemT]], count: int
    ) -> list[ItemT]:
        """Post a request and return its ``count`` items in order; EngineRejected for others."""
        sent = {"model": (await self.find()).model, **body}
        answer = await Retries(_OUTAGE_S, _PAUSE_S).run(
            lambda: self.http.post(path, sent, limit_s=_ANSWER_S)
        )
        with suppress(ValidationError):
            items = sorted(shape.model_validate(answer).items, key=lambda item: item.index)
            if [item.index for item in items] == list(range(count)):
                return items
        raise EngineRejected(
            f"the server's reply for {self.model_id} is not one result per text",
            hint=f"point the URL at a server that serves such a model under /v1/{path}",
        )
