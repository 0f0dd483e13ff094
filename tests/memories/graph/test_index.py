from __future__ import annotations

import asyncio

from mgl.memories.graph import EntityGraph, GraphEntity, GraphIndex, GraphMention, Relation
from mgl.retrieval.fakes import WordEmbedder
from mgl.retrieval.vectors import Query
from mgl.types import Chunk, Span
from tests.retrieval.words import Words

SPAN = Span("d", 0, 1)
HERE = (GraphMention(0, SPAN),)


def entity(name: str, description: str) -> GraphEntity:
    return GraphEntity(name.lower(), name, "person", description, HERE)


GRAPH = EntityGraph(
    {e.id: e for e in (entity("Ann", "a nurse"), entity("Bo", "a sailor"), entity("Ring", ""))},
    {
        "ann|bo": Relation("ann|bo", "ann", "bo", "married in Rome", HERE),
        "ann|ring": Relation("ann|ring", "ann", "ring", "lost it at sea", HERE),
    },
)
CHUNKS = [Chunk(3, SPAN, "They married.", 3), Chunk(8, SPAN, "The ring was lost at sea.", 7)]


def opened() -> GraphIndex:
    return asyncio.run(GraphIndex.open(WordEmbedder(), GRAPH, CHUNKS))


def asked(index: GraphIndex, text: str) -> Query:
    return asyncio.run(index.embed(text))


def test_an_embedder_that_ranks_by_more_is_asked_with_the_query_itself() -> None:
    """The words that a query shares with a text then count beside the cosine."""
    index = asyncio.run(GraphIndex.open(Words("all"), GRAPH, CHUNKS))
    query = asked(index, "the ring was lost")
    assert query == "the ring was lost"
    (found,) = index.chunks.nearest(query, 1)
    assert found[0] == 8
    assert found[1] > 1, "s_lex and s_mul are in the sum"
