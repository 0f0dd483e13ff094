"""Where a subquery looks for entities: around a point of the memory, or beyond the memory.

Source: HGMem §3.4, Eq. 6 and 7. Neighbours over the graph include those of the question's own
overlay.
"""

from __future__ import annotations

from collections.abc import Iterable

from mgl.memories.graph.state import EntityGraph
from mgl.memories.hgmem.state import Memory

__all__ = ["beyond", "neighbourhood"]


def neighbourhood(
    memory: Memory, graph: EntityGraph, vertices: Iterable[str], *, hops: int = 1
) -> frozenset[str]:
    """N(V) of Eq. 6: for each vertex its neighbours over the memory and over the graph.

    With more ``hops`` the neighbours of those as well, and so on; the paper has one.
    """
    found: set[str] = set()
    border = set(vertices)
    for _ in range(hops):
        near = {
            neighbour
            for vertex in border
            for neighbour in (
                memory.neighbours(vertex) | graph.neighbours(vertex) | memory.overlay(vertex)
            )
        }
        border = near - found
        found |= near
    return frozenset(found)


def beyond(memory: Memory, graph: EntityGraph) -> frozenset[str]:
    """C(M) of Eq. 7: the entities of the graph that are no vertex of the memory."""
    return frozenset(graph.entities.keys() - memory.vertices.keys())
