"""What a memory shows of itself: nodes and edges with their sources, ready to be drawn.

A memory turns its state into a ``GraphView``; exporters and the inspector read nothing else, so
they know no memory. ``step`` is the chunk (or turn) that brought an element and ``gone`` the one
that took it away, which lets the graph be replayed in reading order.

A hyperedge, which joins any number of nodes, is a node itself, with an edge to each that it joins.

A category, which holds nodes of lower layers, is a node of layer 1 or above, with an edge to each
that it holds; a node may be in several. All other edges link nodes of layer 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mgl.types import Answer, Document, Span


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
        """The highest layer; 0 where there is no hierarchy."""
        return max((node.layer for node in self.nodes), default=0)

    @property
    def length(self) -> int:
        """How many steps there are to replay: ``steps``, or more where an element needs more."""
        brought = (each.step + 1 for each in self.elements)
        taken = (each.gone + 1 for each in self.elements if each.gone is not None)
        return max([self.steps, *brought, *taken])

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


def _there(element: ViewNode | ViewEdge, step: int) -> bool:
    return element.step < step and (element.gone is None or element.gone >= step)
