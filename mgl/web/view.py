"""What a memory shows of itself: nodes and edges with their sources, ready to be drawn.

A memory turns its state into a ``GraphView``; exporters and the inspector read nothing else, so
they know no memory. ``step`` is the chunk (or turn) that brought an element, which lets the
graph be replayed in reading order.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgl.types import Answer, Document, Span

__all__ = ["GraphView", "ViewEdge", "ViewNode"]


@dataclass(frozen=True, slots=True)
class ViewNode:
    """A node: ``kind`` decides its colour, ``label`` is shown, ``content`` is what it says."""

    id: str
    kind: str
    label: str
    content: str
    span: Span
    step: int


@dataclass(frozen=True, slots=True)
class ViewEdge:
    """A directed edge between two nodes of the same view."""

    id: str
    source: str
    target: str
    relation: str
    span: Span
    step: int


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
