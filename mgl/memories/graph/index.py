"""What of an entity graph is like a query: entities, relations and chunks by their vectors.

    index = await GraphIndex.open(embedder, graph, chunks)
    (vector,) = await index.embed(["Who gave Carter a slave?"])
    index.entities.nearest(vector, 5, among=graph.neighbours("carter"))

Source: HGMem §3.1 and §4.2, where nodes, edges and chunks are embedded for retrieval. It is shared
by all questions and holds nothing of any.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from mgl.memories.graph.state import Entity, EntityGraph, Relation
from mgl.retrieval.base import Embedder
from mgl.retrieval.vectors import VectorIndex
from mgl.types import Chunk

__all__ = ["GraphIndex", "KeyedVectors", "entity_text", "relation_text"]

Key = TypeVar("Key", bound=Hashable)


def entity_text(entity: Entity) -> str:
    """What is embedded of an entity."""
    return f"{entity.name}\n{entity.description}"


def relation_text(relation: Relation, entities: Mapping[str, Entity]) -> str:
    """What is embedded of a relation."""
    source, target = entities[relation.source], entities[relation.target]
    return f"{source.name} - {target.name}\n{relation.description}"


class KeyedVectors(Generic[Key]):
    """What is like a query, by keys of its own. Scores are cosines, the best first."""

    def __init__(self, embedder: Embedder, keys: Iterable[Key], texts: Iterable[str]) -> None:
        self._keys = list(keys)
        self._places = {key: place for place, key in enumerate(self._keys)}
        self._index = VectorIndex(embedder)
        self._index.extend(dict(enumerate(texts)))

    def nearest(
        self,
        vector: NDArray[np.float32],
        count: int,
        *,
        among: Collection[Key] | None = None,
        floor: float = -1.0,
    ) -> list[tuple[Key, float]]:
        """The ``count`` keys most like a query, of a cosine of ``floor`` or more.

        Keys of ``among`` that are not there are passed over; an empty ``among`` finds nothing.
        """
        places = None
        if among is not None:
            places = [self._places[key] for key in among if key in self._places]
        if count < 1 or not self._keys or places == []:
            return []
        hits = self._index.search(vector, count, places)
        return [(self._keys[hit.id], hit.score) for hit in hits if hit.score >= floor]


class GraphIndex:
    """The vectors of one graph and its chunks: ``entities`` and ``relations`` by id, ``chunks`` by
    number."""

    def __init__(
        self,
        embedder: Embedder,
        entities: KeyedVectors[str],
        relations: KeyedVectors[str],
        chunks: KeyedVectors[int],
    ) -> None:
        self._embedder = embedder
        self.entities, self.relations, self.chunks = entities, relations, chunks

    @classmethod
    async def open(
        cls, embedder: Embedder, graph: EntityGraph, chunks: Sequence[Chunk]
    ) -> GraphIndex:
        """Embed all of a graph; what the embedder raises."""

        def work() -> GraphIndex:
            relations = graph.relations.values()
            return cls(
                embedder,
                KeyedVectors(embedder, graph.entities, map(entity_text, graph.entities.values())),
                KeyedVectors(
                    embedder,
                    graph.relations,
                    (relation_text(relation, graph.entities) for relation in relations),
                ),
                KeyedVectors(embedder, [c.index for c in chunks], (chunk.text for chunk in chunks)),
            )

        return await asyncio.to_thread(work)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The vectors of some queries: shape (n, dims)."""
        if not texts:
            return np.zeros((0, self._embedder.dims), dtype=np.float32)
        return await asyncio.to_thread(self._embedder.embed, texts, task="query")
