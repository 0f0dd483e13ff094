"""What a subquery finds, and where it looks: around a point of the memory, or beyond the memory.

Source: HGMem §3.2, Eq. 1; §3.4, Eq. 6 and 7; §4.2 for the vectors of hyperedges. Entities are the
n_v most like the subquery; the relationships of those and their chunks come by the graph and are
held to the n_e and n_d most like it. Neighbours over the graph include those of the question's own
overlay.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mgl.llm.base import LLM
from mgl.memories.graph import EntityGraph, GraphIndex
from mgl.memories.graph.index import relation_text
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.state import HypergraphMemory, Retrieve
from mgl.retrieval.ranking import nearest
from mgl.types import Chunk, Question


@dataclass(frozen=True, slots=True)
class Inquiry:
    """One question over one document's graph, and the model that is asked."""

    llm: LLM
    question: Question
    graph: EntityGraph
    chunks: Sequence[Chunk]
    config: HgMemConfig

    def names(self, memory: HypergraphMemory) -> dict[str, str]:
        """The names of all entities, those of the question's own overlay included."""
        known = {vertex.id: vertex.name for vertex in memory.vertices.values()}
        return known | {each.id: each.name for each in self.graph.entities.values()}


def neighbourhood(
    memory: HypergraphMemory, graph: EntityGraph, vertices: Iterable[str], *, hops: int = 1
) -> frozenset[str]:
    """N(V) of Eq. 6: the neighbours of vertices in the memory and in the graph, at most ``hops``
    away; the paper has one hop."""
    found: set[str] = set()
    border = set(vertices)
    for _ in range(hops):
        near: set[str] = set()
        for vertex in border:
            near |= memory.neighbours(vertex) | graph.neighbours(vertex)
            near |= memory.overlay.neighbours(vertex)
        border = near - found
        found |= near
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The graph's index, searched for one question."""

    inquiry: Inquiry
    index: GraphIndex

    async def find(
        self,
        query: str,
        scope: frozenset[str],
        memory: HypergraphMemory,
        *,
        without: frozenset[int] = frozenset(),
    ) -> Retrieve:
        """Retrieve over a scope (Eq. 1), entities of the overlay included; ``without`` are chunks
        to leave out."""
        graph, config, index = self.inquiry.graph, self.inquiry.config, self.index
        vector = await index.embed(query)
        hits = index.entities.nearest(
            vector, config.entities, among=scope & graph.entities.keys(), floor=config.floor
        )
        new = {
            each.id: f"{each.name}\n{each.description}"
            for each in memory.vertices.values()
            if each.new and each.id in scope
        }
        near = await nearest(index.embedder, query, new, config.entities)
        hits += [(identity, score) for identity, score in near if score >= config.floor]
        entities = tuple(identity for identity, _ in _best(hits, config.entities))
        around = {relation.id for each in entities for relation in graph.relations_of(each)}
        relations = index.relations.nearest(vector, config.relations, among=around)
        beside = {
            relation.id: relation_text(relation, self.inquiry.names(memory))
            for each in entities
            for relation in memory.overlay.relations_of(each)
        }
        relations += await nearest(index.embedder, query, beside, config.relations)
        tied = {chunk for each in entities for chunk in self._chunks_of(each, memory)} - without
        chunks = index.chunks.nearest(vector, config.chunks, among=tied)
        chunks += index.chunks.nearest(vector, config.dense_chunks)
        return Retrieve(
            subquery=query,
            scope=len(scope),
            entities=entities,
            relations=tuple(identity for identity, _ in _best(relations, config.relations)),
            chunks=tuple(dict.fromkeys(number for number, _ in chunks)),
        )

    def _chunks_of(self, entity: str, memory: HypergraphMemory) -> tuple[int, ...]:
        """The chunks that an entity of the graph or of the overlay is tied to."""
        known = self.inquiry.graph.entities.get(entity)
        return memory.vertices[entity].chunks if known is None else known.chunks

    async def rank_points(self, query: str, memory: HypergraphMemory) -> list[int]:
        """The numbers of the memory's points, the most similar to the query first.

        Hyperedges are embedded, too (§4.2); what they are searched for, the paper leaves open.
        """
        texts = {point.number: point.description for point in memory.points.values()}
        ranked = await nearest(self.index.embedder, query, texts, len(texts))
        return [number for number, _ in ranked]

    async def best_chunks(self, query: str, among: Sequence[int] | None, count: int) -> list[int]:
        """The chunks nearest to the query, best first, among some of them or all."""
        vector = await self.index.embed(query)
        return [number for number, _ in self.index.chunks.nearest(vector, count, among=among)]


def _best(hits: Sequence[tuple[str, float]], count: int) -> list[tuple[str, float]]:
    return sorted(hits, key=lambda hit: -hit[1])[:count]
