"""The memory of one question: points over entities, and the edits and events of its log.

Source: HGMem §3.3–3.5. A point is a hyperedge: a description, and two or more entities as its
vertices. Every vertex is an entity of the document's graph, or of an overlay that belongs to this
question alone: the paper inserts what is missing into the graph itself, which other questions
share. A merge takes its parents out of the memory; the log keeps them.

A step of the log is a step of the method: its rows are the judgement, each subquery with its case,
what each retrieved, the edits that evolved the memory, an answer where one was given, and why the
loop ended. Only the edits change the memory; the other rows explain them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, Literal

from mgl.memories.graph.state import EntityGraph, Relation, relation_id
from mgl.memories.hypergraph import make_hypergraph
from mgl.memories.log import Vocabulary
from mgl.store import EditRecord

Case = Literal["1", "2.1", "2.2"]
"""Fig. 6: sufficient; a point of the memory is investigated; what lies beyond it is explored."""

StopReason = Literal["sufficient", "no_concerns", "steps", "unjudged", "failed", "retried"]
"""``unjudged``: the judgement could not be had; ``failed``: the answer could not; ``retried``: an
answer that had failed was given when it was asked for again."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """An entity of the memory (Eq. 4) and the chunks it is tied to.

    A vertex of the overlay is ``new``. ``linked`` are the entities it was inserted with; it has a
    relationship with each, which ``description`` describes.
    """

    id: str
    name: str
    chunks: tuple[int, ...]
    new: bool = False
    description: str = ""
    linked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """A memory point (Eq. 5). ``step`` is when it was inserted, ``changed`` when it was last
    updated, ``parents`` are the points it was merged from."""

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
class UpdatePoint:
    """A new description of a point; its vertices stay (§3.5), except in the released code, which
    replaces them."""

    step: int
    point: int
    description: str
    vertices: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MergePoints:
    """Points become one, whose vertices are the union of theirs (Eq. 8).

    ``kept`` is the released code's: the hyperedges of the parents stay, though no point shows
    them. The parents ``left`` go with a later merge of the same reply.
    """

    step: int
    point: int
    parents: tuple[int, ...]
    description: str
    kept: bool = False
    left: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Restart:
    """Empties the memory, as the released code does after an unreadable reply."""


Edit = AddVertex | Insert | UpdatePoint | MergePoints | Restart


@dataclass(frozen=True)
class HypergraphMemory:
    """M = (V, E). ``kept`` are hyperedges that no point has any more, as in the released code."""

    points: Mapping[int, Point] = field(default_factory=dict)
    vertices: Mapping[str, Vertex] = field(default_factory=dict)
    kept: frozenset[frozenset[str]] = frozenset()
    next_point: int = 0

    @cached_property
    def hypergraph(self) -> Any:
        """The memory in hypergraph-db (§4.2), built on first use.

        A vertex holds the name, the description and the chunks of its entity (Eq. 4). A hyperedge
        holds its ``points`` (Eq. 5), each with its number, its description, the chunks of its
        entities, and where it came from. It is known by its vertices: points over the same entities
        share one, and one that no point has any more holds none.
        """
        vertices = {
            each.id: {"name": each.name, "description": each.description, "chunks": each.chunks}
            for each in self.vertices.values()
        }
        edges: dict[frozenset[str], list[dict[str, Any]]] = {each: [] for each in self.kept}
        for point in self.points.values():
            chunks = {chunk for each in point.vertices for chunk in self.vertices[each].chunks}
            edges.setdefault(point.vertices, []).append(
                {
                    "number": point.number,
                    "description": point.description,
                    "chunks": tuple(sorted(chunks)),
                    "step": point.step,
                    "changed": point.changed,
                    "parents": point.parents,
                }
            )
        held = [(each, {"points": points}) for each, points in edges.items()]
        return make_hypergraph(vertices, held)

    def neighbours(self, vertex: str) -> frozenset[str]:
        """N_M: the other vertices of the hyperedges that hold this one."""
        return frozenset(self.hypergraph.nbr_v(vertex) if vertex in self.vertices else ())

    @cached_property
    def overlay(self) -> EntityGraph:
        """What the question adds to the document's graph: the relationships of new vertices."""
        relations: dict[str, Relation] = {}
        for vertex in self.vertices.values():
            for other in vertex.linked if vertex.new else ():
                source, target = sorted((vertex.id, other))
                known = Relation(
                    relation_id(source, target), source, target, vertex.description, ()
                )
                relations.setdefault(known.id, known)
        return EntityGraph(relations=relations)


EMPTY = HypergraphMemory()


def apply(memory: HypergraphMemory, edit: Edit) -> HypergraphMemory:
    """The memory after one edit. ValueError for one that does not fit: a point or a vertex that is
    missing, or exists already."""
    points, kept, following = dict(memory.points), memory.kept, memory.next_point
    match edit:
        case Restart():
            return EMPTY
        case AddVertex(vertex=vertex):
            _check(vertex.id not in memory.vertices, f"vertex {vertex.id} exists")
            return replace(memory, vertices={**memory.vertices, vertex.id: vertex})
        case UpdatePoint(point=number, description=description):
            _check(number in points, f"no point {number}")
            held = points[number].vertices if edit.vertices is None else frozenset(edit.vertices)
            points[number] = replace(
                points[number], description=description, vertices=held, changed=edit.step
            )
        case Insert(point=number, description=description):
            _check(number == following, f"point {number} is not the next one")
            held = frozenset(edit.vertices)
            points[number] = Point(number, description, held, edit.step, edit.step)
            following += 1
        case MergePoints(point=number, parents=parents, description=description):
            _check(number == following, f"point {number} is not the next one")
            _check(len(set(parents)) > 1, "a merge has two parents at least")
            _check(points.keys() >= set(parents), f"a parent of point {number} is not there")
            held = frozenset().union(*(points[parent].vertices for parent in parents))
            gone = [points.pop(parent).vertices for parent in set(parents).difference(edit.left)]
            kept = kept.union(gone) if edit.kept else kept
            points[number] = Point(number, description, held, edit.step, edit.step, parents)
            following += 1
    _check(len(held) > 1 and held <= memory.vertices.keys(), f"point {number} has no vertices")
    return HypergraphMemory(points, memory.vertices, kept, following)


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


@dataclass(frozen=True, slots=True)
class ChosenCase:
    """Fig. 6: the case that the model chose, whether or not it was open."""

    case: Case


@dataclass(frozen=True, slots=True)
class Subquery:
    """Fig. 7: a subquery and the concern it serves; ``point`` is the point to investigate (case
    2.1). The first step asks the query itself, which serves no concern."""

    text: str
    case: Case | None = None
    concern: str | None = None
    point: int | None = None


@dataclass(frozen=True, slots=True)
class Retrieve:
    """What a subquery found, best first: ids of entities and relations, numbers of chunks.
    ``scope`` is how many entities were searched."""

    subquery: str
    scope: int
    entities: tuple[str, ...]
    relations: tuple[str, ...]
    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Respond:
    """An answer, the chunks that it names, and the chunks that it was given, best first."""

    text: str
    chunks: tuple[int, ...]
    read: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Counts:
    """What a question took: its steps, their subqueries, and the chunks found, each once a step."""

    steps: int
    subqueries: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the loop ended."""

    reason: StopReason


def find_start(rows: Sequence[EditRecord]) -> int:
    """Find the step at which a log's last attempt began."""
    return max((row.chunk + 1 for row in rows if row.op == "restart"), default=0)


VOCABULARY: Final = Vocabulary[Edit, HypergraphMemory](
    {
        "vertex": AddVertex,
        "insert": Insert,
        "update": UpdatePoint,
        "merge": MergePoints,
        "restart": Restart,
    },
    apply,
    EMPTY,
    events={
        "judge": ChosenCase,
        "subquery": Subquery,
        "retrieve": Retrieve,
        "answer": Respond,
        "counts": Counts,
        "stop": Stop,
    },
)
