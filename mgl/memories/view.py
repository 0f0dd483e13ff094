"""What a memory shows of itself: nodes and edges with their sources, ready to be drawn.

A memory turns its state into a ``GraphView``; exporters and the inspector read nothing else, so
they know no memory. ``step`` is the chunk (or turn) that brought an element and ``gone`` the one
that took it away, which lets the graph be replayed in reading order.

A hyperedge, which joins any number of nodes, is a node itself, with an edge to each that it joins.

A category, which holds nodes of lower layers, is a node of layer 1 or above, with an edge to each
that it holds; a node may be in several. All other edges link nodes of layer 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mgl.types import Answer, Conversation, Document, Span

if TYPE_CHECKING:
    import networkx as nx

    from mgl.store.turns import Correction


@dataclass(frozen=True, slots=True)
class ShownTalk:
    """A conversation as a reader sees it: the numbers of the turns that were forgotten, of those
    that say what another should have said, and of the memory's replies."""

    conversation: Conversation
    forgotten: frozenset[int] = frozenset()
    corrections: Mapping[int, Correction] = field(default_factory=dict)
    replies: frozenset[int] = frozenset()

    def find_corrected(self, number: int) -> int | None:
        """Find the turn in whose place a turn is shown: the first of a chain of corrections; None
        for one that corrects no other."""
        place = number
        while place in self.corrections:
            place = self.corrections[place].corrects
        return None if place == number else place


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node: ``kind`` decides its colour, ``label`` is shown, ``content`` is what it says.

    ``gone`` is never before ``step``; the same step brings and takes what nobody sees.
    """

    id: str
    kind: str
    label: str
    content: str
    span: Span
    step: int
    gone: int | None = None
    hyperedge: bool = False
    layer: int = 0


@dataclass(frozen=True, slots=True)
class ViewEdge:
    """A directed edge between two nodes of the same view; it is there while both of them are."""

    id: str
    source: str
    target: str
    relation: str
    span: Span
    step: int
    gone: int | None = None


@dataclass(frozen=True, slots=True)
class MemorySize:
    """How many nodes and edges a memory has, and how many steps made them."""

    nodes: int
    edges: int
    steps: int


@dataclass(frozen=True, slots=True)
class GraphView:
    """A memory at one moment, with the source it was read from and what it answered."""

    memory_id: str
    memory: str
    model: str
    document: Document
    questions: tuple[str, ...]
    steps: int
    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...]
    answers: tuple[Answer, ...] = ()

    @property
    def elements(self) -> tuple[ViewNode | ViewEdge, ...]:
        """The nodes, then the edges."""
        return (*self.nodes, *self.edges)

    @property
    def top(self) -> int:
        """The highest layer; 0 without a hierarchy."""
        return max((node.layer for node in self.nodes), default=0)

    @property
    def length(self) -> int:
        """How many steps there are to replay: ``steps``, or more where an element needs more."""
        brought = (each.step + 1 for each in self.elements)
        taken = (each.gone + 1 for each in self.elements if each.gone is not None)
        return max([self.steps, *brought, *taken])

    @property
    def size(self) -> MemorySize:
        """Count what is there after the last step."""
        last = self.at(self.length)
        return MemorySize(len(last.nodes), len(last.edges), self.steps)

    def at(self, step: int) -> GraphView:
        """What is there after ``step`` steps, from 0 to ``length``; ValueError beyond.

        Answers stand on the whole memory: they are there after the last step alone.
        """
        if not 0 <= step <= self.length:
            raise ValueError(f"step {step}: there are steps 0 to {self.length}")
        nodes = tuple(replace(node, gone=None) for node in self.nodes if _there(node, step))
        ids = {node.id for node in nodes}
        edges = tuple(
            replace(edge, gone=None)
            for edge in self.edges
            if _there(edge, step) and {edge.source, edge.target} <= ids
        )
        answers = self.answers if step == self.length else ()
        return replace(self, steps=step, nodes=nodes, edges=edges, answers=answers)

    def to_networkx(self) -> nx.MultiDiGraph[str]:
        """Build a networkx graph, for its algorithms: ids are nodes, edges are keyed by theirs.

            >>> document = Document.from_text("a.txt", "Ann met Bo.")
            >>> ann = ViewNode("n1", "person", "Ann", "", document.span(0, 3), 0)
            >>> view = GraphView("m1", "mindgraph", "model", document, (), 1, (ann,), ())
            >>> view.to_networkx().nodes["n1"]["quote"]
            'Ann'

        Nodes and edges have the fields of the view, with ``start`` and ``end`` of their span, its
        text (``quote``) and the chapter or session that it lies in. ``gone``, ``hyperedge`` and
        ``layer`` are only where they are set. A hyperedge is a node with an edge to each member; a
        category is one with an edge to each child. The graph says which memory and document it is
        of.
        """
        import networkx as nx

        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph(
            memory_id=self.memory_id,
            memory=self.memory,
            model=self.model,
            document=self.document.name,
            document_id=self.document.id,
            questions=self.questions,
            steps=self.steps,
        )
        for node in self.nodes:
            own = {"kind": node.kind, "label": node.label, "content": node.content}
            graph.add_node(node.id, **own, **self._describe_source(node))
        for edge in self.edges:
            own = {"relation": edge.relation, **self._describe_source(edge)}
            graph.add_edge(edge.source, edge.target, key=edge.id, **own)
        return graph

    def _describe_source(self, element: ViewNode | ViewEdge) -> dict[str, Any]:
        section = self.document.section_at(element.span.start)
        return {
            "start": element.span.start,
            "end": element.span.end,
            "quote": self.document.quote(element.span),
            "step": element.step,
            **optional_fields(element),
            **({section.kind: section.label} if section else {}),
        }


def optional_fields(element: ViewNode | ViewEdge) -> dict[str, Any]:
    """Return the fields that are exported only if set: ``gone``, ``hyperedge``, ``layer``."""
    fields: dict[str, Any] = {} if element.gone is None else {"gone": element.gone}
    if isinstance(element, ViewNode) and element.hyperedge:
        fields["hyperedge"] = True
    if isinstance(element, ViewNode) and element.layer:
        fields["layer"] = element.layer
    return fields


def _there(element: ViewNode | ViewEdge, step: int) -> bool:
    return element.step < step and (element.gone is None or element.gone >= step)
