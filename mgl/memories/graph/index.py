"""An entity graph searched by vector: its entities, relations and chunks.

    index = await GraphIndex.open(embedder, graph, chunks)
    vector = await index.embed("Who gave Carter a slave?")
    index.entities.nearest(vector, 5, among=graph.neighbours("carter"))

Source: HGMem §3.1 and §4.2, where nodes, edges and chunks are embedded for retrieval. It is shared
by all questions and holds nothing of any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mgl.memories.graph.state import EntityGraph, Relation
from mgl.retrieval.base import Embedder
from mgl.retrieval.multi import ranks_by_more
from mgl.retrieval.vectors import Query, open_index
from mgl.types import Chunk

Key = TypeVar("Key", bound=Hashable)


def relation_text(relation: Relation, names: Mapping[str, str]) -> str:
    """What is embedded of a relation: the names of its ends, and what is said of them."""
    return f"{names[relation.source]} - {names[relation.target]}\n{relation.description}"


class KeyedVectors(Generic[Key]):
    """Texts by their keys, searched by what the embedder ranks by: cosines, unless its ranking
    names more. Best first."""

    def __init__(self, embedder: Embedder, texts: Mapping[Key, str]) -> None:
        self._keys = list(texts)
        self._places = {key: place for place, key in enumerate(self._keys)}
        self._index = open_index(embedder)
        self._index.extend(dict(enumerate(texts.values())))

    def nearest(
        self,
        vector: Query,
        count: int,
        *,
        among: Collection[Key] | None = None,
        floor: float = -1.0,
    ) -> list[tuple[Key, float]]:
        """The ``count`` nearest keys with a score of at least ``floor``.

        Unknown keys of ``among`` are ignored; an empty ``among`` finds nothing.
        """
        places = None
        if among is not None:
            places = [self._places[key] for key in among if key in self._places]
        if count < 1 or not self._keys or places == []:
            return []
        hits = self._index.search(vector, count, places)
        return [(self._keys[hit.id], hit.score) for hit in hits if hit.score >= floor]


@dataclass(frozen=True, slots=True)
class GraphIndex:
    """The vectors of one graph and its chunks: ``entities`` and ``relations`` by id, ``chunks`` by
    number."""

    embedder: Embedder
    entities: KeyedVectors[str]
    relations: KeyedVectors[str]
    chunks: KeyedVectors[int]

    @classmethod
    async def open(
        cls, embedder: Embedder, graph: EntityGraph, chunks: Sequence[Chunk]
    ) -> GraphIndex:
        """Embed all of a graph; what the embedder raises."""
        known = graph.entities.values()
        names = {each.id: each.name for each in known}
        entities = {each.id: f"{each.name}\n{each.description}" for each in known}
        relations = {each.id: relation_text(each, names) for each in graph.relations.values()}
        texts = {chunk.index: chunk.text for chunk in chunks}

        def embed() -> GraphIndex:
            own = (KeyedVectors(embedder, entities), KeyedVectors(embedder, relations))
            return cls(embedder, *own, KeyedVectors(embedder, texts))

        return await asyncio.to_thread(embed)

    async def embed(self, query: str) -> Query:
        """What ``nearest`` compares: the vector of a query, shape (dims,), or the query itself for
        an embedder that ranks by more, which has then been embedded and is cached."""
        if ranks_by_more(self.embedder):
            await asyncio.to_thread(self.embedder.encode, [query], task="query")
            return query
        vector: NDArray[np.float32]
        (vector,) = await asyncio.to_thread(self.embedder.embed, [query], task="query")
        return vector
