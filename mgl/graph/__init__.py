"""The entity graph of a document, and its index: what methods that retrieve over a graph share.

graph = DocumentGraph(tools, document)
await graph.build()
graph.graph().neighbours("carter")
"""

from mgl.graph.config import GraphConfig
from mgl.graph.estimate import Estimate
from mgl.graph.index import GraphIndex
from mgl.graph.memory import DocumentGraph
from mgl.graph.names import entity_key
from mgl.graph.state import Entity, EntityGraph, Mention, Relation

__all__ = [
    "DocumentGraph",
    "Entity",
    "EntityGraph",
    "Estimate",
    "GraphConfig",
    "GraphIndex",
    "Mention",
    "Relation",
    "entity_key",
]
