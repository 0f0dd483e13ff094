"""Reranking by a server: ``/v1/rerank``, as vLLM, llama.cpp, TEI's peers and Jina's API have it.

    reranker = ServerReranker("http://127.0.0.1:8002/v1", names=("BAAI/bge-reranker-v2-m3",),
                              model_id="bge-reranker-v2-m3@main+openai")

vLLM and most others answer with probabilities. llama.cpp answers with logits, which are turned
into probabilities here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ValidationError

from mgl.errors import EngineRejected
from mgl.llm.concurrency import Retries
from mgl.llm.engines.server import Http, Server, identify
from mgl.retrieval.computing import readable
from mgl.retrieval.rerankers.local import probabilities

__all__ = ["ServerReranker"]

_BATCH = 64
_ANSWER_S = 600.0
_OUTAGE_S, _PAUSE_S = 300.0, 0.5


class _Result(BaseModel):
    index: int
    relevance_score: float


class _Answer(BaseModel):
    results: list[_Result]


class ServerReranker:
    """A model behind a URL; it is looked for with the first texts.

    ``names`` are what the server may call the model. Raises the EngineError family.
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
        server, (asked, *sent) = self._server, readable([query, *texts])
        batches = [sent[start : start + _BATCH] for start in range(0, len(sent), _BATCH)]
        parts = await asyncio.gather(*(self._ask(server.model, asked, part) for part in batches))
        found = np.concatenate(parts)
        if server.kind == "llama.cpp":
            found = 1 / (1 + np.exp(-found))
        return probabilities(found, count=len(texts), model_id=self.model_id)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _ask(self, model: str, query: str, texts: Sequence[str]) -> NDArray[np.float64]:
        """The server's own scores, in the order of the texts."""
        body = {"model": model, "query": query, "documents": list(texts), "top_n": len(texts)}
        answer = await Retries(_OUTAGE_S, _PAUSE_S).run(
            lambda: self._http.post("rerank", body, limit_s=_ANSWER_S)
        )
        try:
            results = sorted(_Answer.model_validate(answer).results, key=lambda one: one.index)
        except ValidationError as error:
            raise self._unusable() from error
        if [one.index for one in results] != list(range(len(texts))):
            raise self._unusable()
        return np.array([one.relevance_score for one in results])

    def _unusable(self) -> EngineRejected:
        return EngineRejected(
            f"what the server gave for {self.model_id} is not a score for each text",
            hint="point the URL at a server that serves a reranking model under /v1/rerank",
        )
