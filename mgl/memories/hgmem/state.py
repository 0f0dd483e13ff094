"""The memory of one question: points over entities, and the function that evolves it.

Source: HGMem §3.3–3.5. A point is a hyperedge: a description, and two or more entities as its
vertices. Every vertex is an entity of the document's graph, or of an overlay that belongs to this
question alone: the paper inserts what is missing into the graph itself, which other questions
share. A merge takes its parents out of the memory; the log keeps them.

``apply`` gives the memory after one edit; ``replay`` of a log gives the same memory again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from mgl.memories.hgmem.hypergraph import Hypergraph

__all__ = [
    "EMPTY",
    "AddVertex",
    "Edit",
    "Insert",
    "Memory",
    "Merge",
    "Point",
    "Restart",
    "Update",
    "Vertex",
    "apply",
    "replay",
]


@dataclass(frozen=True, slots=True)
class Vertex:
    """An entity of the memory (Eq. 4) and the chunks it is tied to.

    One of the overlay has ``new`` set, and in ``linked`` what it was inserted together with: its
    relationships, which all say what ``description`` says.
    """

    id: str
    name: str
    chunks: tuple[int, ...]
    new: bool = False
    description: str = ""
    linked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A memory point (Eq. 5). ``number`` is its own; ``step`` is when it came, ``changed`` when it
    was last said anew, ``parents`` what it was merged of."""

    number: int
    description: str
    vertices: frozenset[str]
    step: int
    changed: int
    parents: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AddVertex:
    """An entity becomes a vertex; every vertex comes with the point that first holds it."""

    vertex: Vertex


@dataclass(frozen=True, slots=True)
class Insert:
    """A new point; its vertices are there already."""

    point: int
    description: str
    vertices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A point is said anew; its vertices stay (§3.5), but for the released code's, which gives
    others."""

    point: int
    description: str
    vertices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Points become one, whose vertices are the union of theirs (Eq. 8).

    ``kept`` is the released code's: the hyperedges of the parents stay, though no point shows
    them.
    """

    point: int
    parents: tuple[int, ...]
    description: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """Everything is begun anew: what the released code does where a reply cannot be read."""


Edit = AddVertex | Insert | Update | Merge | Restart


@dataclass(frozen=True)
class Memory:
    """M = (V, E). ``hypergraph`` has the hyperedges by the numbers of their points."""

    points: Mapping[int, Point] = field(default_factory=lambda: MappingProxyType({}))
    vertices: Mapping[str, Vertex] = field(default_factory=lambda: MappingProxyType({}))
    hypergraph: Hypergraph = field(default_factory=Hypergraph)
    next_point: int = 0

    def neighbours(self, vertex: str) -> frozenset[str]:
        """N_M: the other vertices of the hyperedges that hold this one."""
        return self.hypergraph.neighbours(vertex)

    def overlay(self, vertex: str) -> frozenset[str]:
        """The neighbours that the overlay adds to those of the graph."""
        known = self.vertices.get(vertex)
        own = set(known.linked) if known is not None and known.new else set()
        own.update(v.id for v in self.vertices.values() if v.new and vertex in v.linked)
        return frozenset(own - {vertex})


EMPTY = Memory()


def apply(memory: Memory, edit: Edit, step: int) -> Memory:
    """The memory after one edit of a step. ValueError for an edit that cannot be (a point or a
    vertex that is not there, or is there already): such edits are rejected before they come here.
    """
    points, vertices = dict(memory.points), dict(memory.vertices)
    hypergraph, following = memory.hypergraph.copy(), memory.next_point
    match edit:
        case Restart():
            return Memory()
        case AddVertex(vertex=vertex):
            if vertex.id in vertices:
                raise ValueError(f"vertex {vertex.id} is there")
            vertices[vertex.id] = vertex
            hypergraph.add_vertex(vertex.id)
        case Insert(point=number, description=description):
            held = frozenset(edit.vertices)
            _check(number == following, f"point {number} is not the next one")
            _check(len(held) > 1 and held <= vertices.keys(), f"point {number} has no vertices")
            points[number] = Point(number, description, held, step, step)
            hypergraph.add_edge(str(number), held)
            following += 1
        case Update(point=number, description=description):
            _check(number in points, f"there is no point {number}")
            held = points[number].vertices if edit.vertices is None else frozenset(edit.vertices)
            _check(len(held) > 1 and held <= vertices.keys(), f"point {number} has no vertices")
            if held != points[number].vertices:
                hypergraph.remove_edge(str(number))
                hypergraph.add_edge(str(number), held)
            points[number] = replace(
                points[number], description=description, vertices=held, changed=step
            )
        case Merge(point=number, parents=parents, description=description):
            _check(number == following, f"point {number} is not the next one")
            _check(len(set(parents)) > 1, "a merge has two parents at least")
            _check(points.keys() >= set(parents), f"a parent of point {number} is not there")
            held = frozenset().union(*(points[parent].vertices for parent in parents))
            for parent in parents:
                del points[parent]
                if not edit.kept:
                    hypergraph.remove_edge(str(parent))
            points[number] = Point(number, description, held, step, step, parents)
            hypergraph.add_edge(str(number), held)
            following += 1
    return Memory(MappingProxyType(points), MappingProxyType(vertices), hypergraph, following)


def replay(edits: Iterable[tuple[int, Edit]], memory: Memory = EMPTY) -> Memory:
    """The memory that a log stands for: steps and their edits."""
    for step, edit in edits:
        memory = apply(memory, edit, step)
    return memory


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
