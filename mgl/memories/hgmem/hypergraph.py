"""A hypergraph whose hyperedges have names of their own, over hypergraph-db.

The library knows a hyperedge by its set of vertices, so two with the same set would be one. Each
hyperedge here has, beside its vertices, one vertex that is its alone and is never shown: its
anchor. The library's own file format is a pickle, which is neither written nor read.

    >>> graph = Hypergraph()
    >>> graph.add_vertex("ann"), graph.add_vertex("bo")
    (None, None)
    >>> graph.add_edge("0", ["ann", "bo"]), graph.add_edge("1", ["ann", "bo"])
    (None, None)
    >>> graph.edges(), sorted(graph.neighbours("ann"))
    (('0', '1'), ['bo'])
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Final

__all__ = ["Hypergraph"]

_ANCHOR: Final = "\x00"  # no name of an entity holds it


class Hypergraph:
    """Vertices and hyperedges, both known by a text; a hyperedge has one vertex at least.

    KeyError for what does not exist, ValueError for a hyperedge that does or has no vertex.
    """

    def __init__(self) -> None:
        self._structure = _in_memory()()
        self._vertices: dict[str, frozenset[str]] = {}

    def copy(self) -> Hypergraph:
        other = Hypergraph()
        for vertex in self.vertices:
            other.add_vertex(vertex)
        for edge, vertices in self._vertices.items():
            other.add_edge(edge, vertices)
        return other

    @property
    def vertices(self) -> frozenset[str]:
        return frozenset(v for v in self._structure.all_v if not v.startswith(_ANCHOR))

    def add_vertex(self, vertex: str) -> None:
        """Add a vertex; an existing one stays as it is."""
        if vertex.startswith(_ANCHOR):
            raise ValueError(f"{vertex!r} cannot be the name of a vertex")
        if not self._structure.has_v(vertex):
            self._structure.add_v(vertex, {})

    def edges(self) -> tuple[str, ...]:
        """Hyperedges in the order in which they were added."""
        return tuple(self._vertices)

    def add_edge(self, edge: str, vertices: Iterable[str]) -> None:
        held = frozenset(vertices)
        if edge in self._vertices or not held:
            raise ValueError(f"hyperedge {edge} exists, or has no vertex")
        missing = sorted(held - self.vertices)
        if missing:
            raise KeyError(missing[0])
        self._structure.add_v(_ANCHOR + edge, {})
        self._structure.add_e(self._key(edge, held), {})
        self._vertices[edge] = held

    def remove_edge(self, edge: str) -> None:
        """Take a hyperedge away; its vertices stay."""
        held = self._vertices.pop(edge)
        self._structure.remove_e(self._key(edge, held))
        self._structure.remove_v(_ANCHOR + edge)

    def vertices_of(self, edge: str) -> frozenset[str]:
        return self._vertices[edge]

    def neighbours(self, vertex: str) -> frozenset[str]:
        """The other vertices of all hyperedges that hold this one; none where it is not there."""
        if not self._structure.has_v(vertex):
            return frozenset()
        near = self._structure.nbr_v(vertex)
        return frozenset(v for v in near if not v.startswith(_ANCHOR))

    @staticmethod
    def _key(edge: str, vertices: frozenset[str]) -> tuple[str, ...]:
        return (_ANCHOR + edge, *sorted(vertices))


@cache
def _in_memory() -> Any:
    """The library's structure without its files: made plainly, it unpickles one that lies in the
    current folder."""
    from hyperdb import HypergraphDB

    class InMemory(HypergraphDB):  # type: ignore[misc]
        def __post_init__(self) -> None:
            pass

        def load(self, storage_file: object) -> bool:
            raise NotImplementedError(f"{storage_file} is not read")

        def save(self, storage_file: object) -> bool:
            raise NotImplementedError(f"{storage_file} is not written")

    return InMemory
