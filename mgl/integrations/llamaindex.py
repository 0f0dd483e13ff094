"""LlamaIndex: a retriever over any memory (extra ``llamaindex``).

retriever = MglNodeRetriever("diary")
retriever.retrieve("Where do I live?")
"""

from __future__ import annotations

import asyncio

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from mgl.integrations.client import RestClient, describe_found


class MglNodeRetriever(BaseRetriever):
    """Finds turns of a conversation, or nodes of a document, with their passages as metadata.

    ``memory`` is a conversation's or document's name, or a memory's id; ``base_url`` and
    ``api_key`` are as in ``RestClient``. The best comes first, without a score: ranks of several
    kinds are merged, and no number is left that means something alone.
    """

    def __init__(
        self,
        memory: str,
        *,
        limit: int = 10,
        base_url: str | None = None,
        api_key: str | None = None,
    ) -> None:
        super().__init__()
        self._memory = memory
        self._limit = limit
        self._client = RestClient(base_url, api_key)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._client.search(self._memory, query_bundle.query_str, self._limit)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=each["node_id"],
                    text=describe_found(each),
                    metadata=each,
                    excluded_llm_metadata_keys=[*each],
                    excluded_embed_metadata_keys=[*each],
                )
            )
            for each in found
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)
