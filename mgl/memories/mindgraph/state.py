"""The concept graph: nodes, directed labelled edges, and the edits that its log is made of.

Source: MindGraph §3.1–3.2. A node is one of five types and has exact provenance; an edge's
relation is an open-vocabulary string. ``apply`` is a pure function, so replaying a log from
``EMPTY`` gives the same graph again. How edits are proposed and checked is for ``edits`` to say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from mgl.memories.log import Vocabulary
from mgl.memories.table import Table
from mgl.types import Span

NodeType = Literal["entity", "event", "claim", "concept", "stat"]


@dataclass(frozen=True, slots=True)
class SourcePassage:
    """A source of a node: a span of the original, its words, and its chunk."""

    span: Span
    quote: str
    chunk: int


@dataclass(frozen=True, slots=True)
class Node:
    """``chunk`` introduced it. ``sources`` are all its sources, latest first; an edit of its
    content that has a source adds it."""

    id: str
    type: NodeType
    content: str
    chunk: int
    sources: tuple[SourcePassage, ...]

    @property
    def span(self) -> Span:
        """The span of the latest source."""
        return self.sources[0].span

    @property
    def quote(self) -> str:
        """The words of the latest source."""
        return self.sources[0].quote


@dataclass(frozen=True, slots=True)
class Edge:
    """``source`` —relation→ ``target``; the triple is its identity."""

    source: str
    target: str
    relation: str
    span: Span
    quote: str
    chunk: int

    @property
    def id(self) -> str:
        return edge_id(self.source, self.relation, self.target)


def edge_id(source: str, relation: str, target: str) -> str:
    """The identity of an edge: no two edges of a graph share it."""
    return f"{source}|{relation}|{target}"


@dataclass(frozen=True, slots=True)
class Graph:
    """A directed labelled graph G = (V, E). ``elements`` holds both in the order of insertion,
    keyed by node id and edge id, so that its serialisation only ever grows at the end."""

    elements: Table[str, Node | Edge] = field(default_factory=Table)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(item for item in self.elements.values() if isinstance(item, Node))

    @property
    def edges(self) -> tuple[Edge, ...]:
        return tuple(item for item in self.elements.values() if isinstance(item, Edge))

    def node(self, node_id: str) -> Node | None:
        found = self.elements.get(node_id)
        return found if isinstance(found, Node) else None

    def has_edge(self, source: str, relation: str, target: str) -> bool:
        return edge_id(source, relation, target) in self.elements

    def edges_of(self, node_id: str) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.edges if node_id in (edge.source, edge.target))

    @property
    def hash(self) -> str:
        """sha256 over all that the graph says, hexadecimal; what reports are cached by."""
        return hashlib.sha256(serialise(self).encode()).hexdigest()


EMPTY = Graph()


@dataclass(frozen=True, slots=True)
class AddNode:
    id: str
    type: NodeType
    content: str
    span: Span
    quote: str
    chunk: int


@dataclass(frozen=True, slots=True)
class AddEdge:
    source: str
    target: str
    relation: str
    span: Span
    quote: str
    chunk: int


@dataclass(frozen=True, slots=True)
class EditNode:
    """``span`` and ``quote`` are the source of the new content; without them the node keeps the
    sources it has."""

    id: str
    content: str
    chunk: int
    span: Span | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteNode:
    """Its edges go with it."""

    id: str
    chunk: int
    span: Span | None = None
    quote: str | None = None


@dataclass(frozen=True, slots=True)
class Again:
    """Marks a step that reads a failed chunk once more; it is no edit."""

    chunk: int


Edit = AddNode | AddEdge | EditNode | DeleteNode


def apply(graph: Graph, edit: Edit) -> Graph:
    """The graph after one edit. ValueError for one that would break it: an id that exists, an end
    or a target that does not."""
    elements = graph.elements
    match edit:
        case AddNode(id=new, type=kind, content=content, span=span, quote=quote, chunk=chunk):
            if new in elements:
                raise ValueError(f"node {new} exists")
            node = Node(new, kind, content, chunk, (SourcePassage(span, quote, chunk),))
            return Graph(elements.put(new, node))
        case AddEdge(source=source, target=target, relation=relation):
            edge = Edge(source, target, relation, edit.span, edit.quote, edit.chunk)
            if edge.id in elements:
                raise ValueError(f"edge {edge.id} exists")
            if graph.node(source) is None or graph.node(target) is None:
                raise ValueError(f"edge {edge.id} would dangle")
            return Graph(elements.put(edge.id, edge))
        case EditNode(id=known, content=content, chunk=chunk, span=span, quote=quote):
            found = graph.node(known)
            if found is None:
                raise ValueError(f"no node {known}")
            sources = found.sources
            if span is not None and quote is not None:
                earlier = (source for source in sources if source.span != span)
                sources = (SourcePassage(span, quote, chunk), *earlier)
            edited = replace(found, content=content, sources=sources)
            return Graph(elements.put(known, edited))
        case DeleteNode(id=known):
            if graph.node(known) is None:
                raise ValueError(f"no node {known}")
            gone = {known, *(edge.id for edge in graph.edges_of(known))}
            return Graph(Table({name: each for name, each in elements.items() if name not in gone}))


def make_vocabulary(events: Mapping[str, type[Any]]) -> Vocabulary[Edit, Graph]:
    """The edits of a concept graph, with the events that a kind of memory writes beside them."""
    edits = {
        "add_node": AddNode,
        "add_edge": AddEdge,
        "edit_node": EditNode,
        "delete_node": DeleteNode,
    }
    return Vocabulary(edits, apply, EMPTY, events=events, columns=("span",))


VOCABULARY: Final = make_vocabulary({"again": Again})


def serialise(graph: Graph, *, with_provenance: bool = False, since: int = 0) -> str:
    """The graph as the model reads it: a JSON list, one element a line in order of insertion, or
    the literal ``(empty)`` (D.1). A prefix of the text stays the same while elements are only
    added, so that a server's prefix cache holds. The first ``since`` elements are left out.

    ``with_provenance`` gives each element all that it carries (§3.1): the start and the end of its
    latest source in the original, in characters, and the number of its chunk, from 0.
    """
    shown = [*graph.elements.values()][since:]
    if not shown:
        return "(empty)"
    lines = (_line(each, with_provenance=with_provenance) for each in shown)
    return "[\n" + ",\n".join(lines) + "\n]"


def _line(element: Node | Edge, *, with_provenance: bool) -> str:
    is_node = isinstance(element, Node)
    names = ("id", "type", "content") if is_node else ("source", "target", "relation")
    shown: dict[str, Any] = {name: getattr(element, name) for name in names}
    if with_provenance:
        span = element.span
        shown |= {"provenance": [span.start, span.end], "chunk": element.chunk}
    return json.dumps(shown, ensure_ascii=False)
