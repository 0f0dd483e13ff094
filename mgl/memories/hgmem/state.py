"""The memory of one question: points over entities, and the edits and events of its log.

Source: HGMem §3.3–3.5. A point is a hyperedge: a description, and two or more entities as its
vertices. Every vertex is an entity of the document's graph, or of an overlay that belongs to this
question alone: the paper inserts what is missing into the graph itself, which other questions
share. A merge takes its parents out of the memory; the log keeps them.

A step of the log is a step of the method: its rows are the judgement, each subquery with its case,
what each retrieved, the edits that evolved the memory, an answer where one was given, and why the
loop ended. Only the edits change the memory; the other rows say how it came to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal

from mgl.memories.hgmem.hypergraph import Hypergraph
from mgl.memories.log import Vocabulary

Case = Literal["1", "2.1", "2.2"]
"""Fig. 6: sufficient; a point of the memory is investigated; what lies beyond it is explored."""

StopReason = Literal["sufficient", "no_concerns", "steps", "unjudged", "failed"]
"""``unjudged``: the judgement could not be had; ``failed``: the answer could not."""


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
    was last updated, ``parents`` what it was merged of."""

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
    """A new point over vertices that exist."""

    step: int
    point: int
    description: str
    vertices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Update:
    """A new description of a point; its vertices stay (§3.5), except in the released code, which
    gives others."""

    step: int
    point: int
    description: str
    vertices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Merge:
    """Points become one, whose vertices are the union of theirs (Eq. 8).

    ``kept`` is the released code's: the hyperedges of the parents stay, though no point shows
    them.
    """

    step: int
    point: int
    parents: tuple[int, ...]
    description: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Restart:
    """The memory is emptied: what the released code does where a reply cannot be read."""


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


def apply(memory: Memory, edit: Edit) -> Memory:
    """The memory after one edit. ValueError for one that does not fit: a point or a vertex that is
    missing, or exists already."""
    points, vertices = dict(memory.points), dict(memory.vertices)
    hypergraph, following = memory.hypergraph.copy(), memory.next_point
    match edit:
        case Restart():
            return Memory()
        case AddVertex(vertex=vertex):
            if vertex.id in vertices:
                raise ValueError(f"vertex {vertex.id} exists")
            vertices[vertex.id] = vertex
            hypergraph.add_vertex(vertex.id)
        case Insert(point=number, description=description):
            held = frozenset(edit.vertices)
            _check(number == following, f"point {number} is not the next one")
            _check(len(held) > 1 and held <= vertices.keys(), f"point {number} has no vertices")
            points[number] = Point(number, description, held, edit.step, edit.step)
            hypergraph.add_edge(str(number), held)
            following += 1
        case Update(point=number, description=description):
            _check(number in points, f"no point {number}")
            held = points[number].vertices if edit.vertices is None else frozenset(edit.vertices)
            _check(len(held) > 1 and held <= vertices.keys(), f"point {number} has no vertices")
            if held != points[number].vertices:
                hypergraph.remove_edge(str(number))
                hypergraph.add_edge(str(number), held)
            points[number] = replace(
                points[number], description=description, vertices=held, changed=edit.step
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
            points[number] = Point(number, description, held, edit.step, edit.step, parents)
            hypergraph.add_edge(str(number), held)
            following += 1
    return Memory(MappingProxyType(points), MappingProxyType(vertices), hypergraph, following)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


@dataclass(frozen=True, slots=True)
class Judge:
    """Fig. 6: the case that the model judged the memory to be in, open to it or not."""

    case: Case


@dataclass(frozen=True, slots=True)
class Subquery:
    """Fig. 7: a subquery and the concern that it serves; ``point`` is the one that is investigated
    (case 2.1). The first step asks the query itself, which serves none."""

    text: str
    case: Case | None = None
    concern: str | None = None
    point: int | None = None


@dataclass(frozen=True, slots=True)
class Retrieve:
    """What a subquery found, the best first: ids of entities and relations, numbers of chunks.
    ``scope`` is how many entities it was looked for among."""

    subquery: str
    scope: int
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Respond:
    """An answer from the memory as it was then, the chunks that it names as its sources, and those
    that were read for it, the best first."""

    text: str
    chunks: tuple[int, ...]
    read: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the loop ended."""

    reason: StopReason


VOCABULARY: Final = Vocabulary[Edit, Memory](
    {
        "vertex": AddVertex,
        "insert": Insert,
        "update": Update,
        "merge": Merge,
        "restart": Restart,
    },
    apply,
    EMPTY,
    events={
        "judge": Judge,
        "subquery": Subquery,
        "retrieve": Retrieve,
        "answer": Respond,
        "stop": Stop,
    },
)
