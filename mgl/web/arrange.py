"""A view put in one order and checked, so that what is exported is the same every time.

    >>> from mgl.types import Document
    >>> document = Document.from_text("a.txt", "x")
    >>> view = GraphView("m1", "mindgraph", "model", document, (), 1, (), ())
    >>> arranged(view) == view
    True

It checks what an exporter relies on, not whether a quote supports what its node says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mgl.memories.view import GraphView, ViewEdge, ViewNode

__all__ = ["arranged", "holding", "lasting", "marks", "membership"]


def arranged(view: GraphView) -> GraphView:
    """The view with nodes and edges by id; ValueError if it contradicts itself."""
    _unique("node", (node.id for node in view.nodes))
    _unique("edge", (edge.id for edge in view.edges))
    known = {node.id: node for node in view.nodes}
    for node in view.nodes:
        if node.layer < 0 or (node.layer and node.hyperedge):
            raise ValueError(f"{node.id!r} is no category: layer {node.layer}, or a hyperedge")
    for edge in view.edges:
        for end in (edge.source, edge.target):
            if end not in known:
                raise ValueError(f"edge {edge.id!r} names node {end!r}, which is not in the view")
        layers = known[edge.source].layer, known[edge.target].layer
        if any(layers) and not holding(known[edge.source], known[edge.target]):
            raise ValueError(f"edge {edge.id!r} leads from layer {layers[0]} to layer {layers[1]}")
    for each in view.elements:
        view.document.quote(each.span)
        if each.gone is not None and each.gone < each.step:
            raise ValueError(f"{each.id!r} is gone at step {each.gone}, before step {each.step}")
    return replace(
        view,
        nodes=tuple(sorted(view.nodes, key=lambda node: node.id)),
        edges=tuple(sorted(view.edges, key=lambda edge: edge.id)),
    )


def lasting(view: GraphView) -> GraphView:
    """The view without what is not there after any step."""
    nodes = {node.id: node for node in view.nodes if _meet(node)}
    edges = tuple(
        edge
        for edge in view.edges
        if edge.source in nodes
        and edge.target in nodes
        and _meet(edge, nodes[edge.source], nodes[edge.target])
    )
    return replace(view, nodes=tuple(nodes.values()), edges=edges)


def membership(one: ViewNode, other: ViewNode) -> bool:
    """Whether an edge between two nodes says that one of them, a hyperedge, joins the other."""
    return one.hyperedge != other.hyperedge


def holding(one: ViewNode, other: ViewNode) -> bool:
    """Whether an edge from one node to another says that the one, a category, holds the other."""
    return one.layer > other.layer


def marks(element: ViewNode | ViewEdge) -> dict[str, Any]:
    """What is exported of an element only where it is so: ``gone``, ``hyperedge``, ``layer``."""
    said: dict[str, Any] = {} if element.gone is None else {"gone": element.gone}
    if isinstance(element, ViewNode) and element.hyperedge:
        said["hyperedge"] = True
    if isinstance(element, ViewNode) and element.layer:
        said["layer"] = element.layer
    return said


def _meet(*elements: ViewNode | ViewEdge) -> bool:
    taken = (math.inf if each.gone is None else each.gone for each in elements)
    return max(each.step for each in elements) < min(taken)


def _unique(noun: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise ValueError(f"{noun} id {each!r} is in the view twice")
        seen.add(each)
