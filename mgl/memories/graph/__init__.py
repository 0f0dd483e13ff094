"""The entity graph of a document, and its index: what methods that retrieve over a graph share.

graph = DocumentGraph(tools, document)
await graph.build()
graph.graph().neighbours("carter")
"""

from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.index import GraphIndex
from mgl.memories.graph.memory import DocumentGraph
from mgl.memories.graph.names import entity_key
from mgl.memories.graph.state import EntityGraph, GraphEntity, GraphMention, Relation

__all__ = [
    "DocumentGraph",
    "EntityGraph",
    "GraphConfig",
    "GraphEntity",
    "GraphIndex",
    "GraphMention",
    "Relation",
    "entity_key",
]
