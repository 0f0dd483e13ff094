"""What a subquery finds: entities within a scope, then their relationships and chunks.

Source: HGMem §3.2, Eq. 1. Entities are the n_v most like the subquery; the relationships of those
and their chunks come by the graph and are held to the n_e and n_d most like it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.memories.graph import EntityGraph, GraphIndex
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.edits import Retrieve
from mgl.memories.hgmem.state import Memory
from mgl.retrieval.base import Embedder
from mgl.retrieval.ranking import nearest

__all__ = ["Evidence"]


class Evidence:
    """A document's graph with its index, searched for one question."""

    def __init__(
        self, graph: EntityGraph, index: GraphIndex, embedder: Embedder, config: HgMemConfig
    ) -> None:
        self.graph = graph
        self._index = index
        self._embedder = embedder
        self._config = config

    async def find(
        self,
        query: str,
        scope: frozenset[str],
        memory: Memory,
        *,
        but: frozenset[int] = frozenset(),
    ) -> Retrieve:
        """R over the scope (Eq. 1); those of the overlay that lie in it are found as well.

        ``but`` are chunks that are not wanted again.
        """
        config = self._config
        (vector,) = await self._index.embed([query])
        hits = self._index.entities.nearest(
            vector, config.entities, among=scope & self.graph.entities.keys(), floor=config.floor
        )
        own = {v.id: f"{v.name}\n{v.description}" for v in memory.vertices.values() if v.new}
        near = await nearest(
            self._embedder,
            query,
            {identity: text for identity, text in own.items() if identity in scope},
            config.entities,
        )
        hits += [(identity, score) for identity, score in near if score >= config.floor]
        best = sorted(hits, key=lambda hit: -hit[1])[: config.entities]
        entities = tuple(identity for identity, _ in best)
        around = {relation.id for each in entities for relation in self.graph.relations_of(each)}
        relations = self._index.relations.nearest(vector, config.relations, among=around)
        tied = {chunk for each in entities for chunk in self.chunks_of(each, memory)} - but
        chunks = self._index.chunks.nearest(vector, config.chunks, among=tied)
        if config.dense_chunks:
            chunks += self._index.chunks.nearest(vector, config.dense_chunks)
        return Retrieve(
            subquery=query,
            scope=len(scope),
            entities=entities,
            relations=tuple(identity for identity, _ in relations),
            chunks=tuple(dict.fromkeys(number for number, _ in chunks)),
        )

    def chunks_of(self, entity: str, memory: Memory) -> tuple[int, ...]:
        """The chunks that an entity of the graph or of the overlay is tied to."""
        known = self.graph.entities.get(entity)
        return memory.vertices[entity].chunks if known is None else known.chunks

    async def best_chunks(self, query: str, among: Sequence[int] | None, count: int) -> list[int]:
        """Of some chunks, or of all, those most like the query, the best first."""
        (vector,) = await self._index.embed([query])
        return [number for number, _ in self._index.chunks.nearest(vector, count, among=among)]
