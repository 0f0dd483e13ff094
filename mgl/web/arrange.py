"""A view put into one order, so that a page made twice is the same; and how its kinds look.

>>> from mgl.types import Document
>>> document = Document.from_text("a.txt", "x")
>>> view = GraphView("m1", "mindgraph", "model", document, (), 1, (), ())
>>> arrange(view) == view
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from mgl.memories.view import GraphView, ViewEdge, ViewNode

__all__ = [
    "COLOURS",
    "Look",
    "arrange",
    "choose_looks",
    "drop_unseen",
    "is_holding",
    "is_membership",
]

COLOURS: Final = 8
_SHAPES: Final = (
    *("circle", "diamond", "square", "hexagon"),
    *("triangle", "pentagon", "star", "wedge"),
)
_USUAL: Final = ("entity", "event", "claim", "concept", "stat", "point")


def arrange(view: GraphView) -> GraphView:
    """Sort nodes and edges by their ids."""
    return replace(
        view,
        nodes=tuple(sorted(view.nodes, key=lambda node: node.id)),
        edges=tuple(sorted(view.edges, key=lambda edge: edge.id)),
    )


def drop_unseen(view: GraphView) -> GraphView:
    """Drop elements that are not there after any step."""
    nodes = {node.id: node for node in view.nodes if _coexist(node)}
    edges = (
        edge
        for edge in view.edges
        if {edge.source, edge.target} <= nodes.keys()
        and _coexist(edge, nodes[edge.source], nodes[edge.target])
    )
    return replace(view, nodes=tuple(nodes.values()), edges=tuple(edges))


def _coexist(*elements: ViewNode | ViewEdge) -> bool:
    taken = (math.inf if each.gone is None else each.gone for each in elements)
    return max(each.step for each in elements) < min(taken)


def is_membership(one: ViewNode, other: ViewNode) -> bool:
    """Whether an edge between two nodes says that one of them, a hyperedge, joins the other."""
    return one.hyperedge != other.hyperedge


def is_holding(one: ViewNode, other: ViewNode) -> bool:
    """Whether an edge from one node to another says that the one, a category, holds the other."""
    return one.layer > other.layer


@dataclass(frozen=True, slots=True)
class Look:
    """How one kind is drawn; ``colour`` counts the stylesheet's classes ``k0`` to ``k7``."""

    kind: str
    shape: str
    colour: int


def choose_looks(kinds: Iterable[str]) -> tuple[Look, ...]:
    """Choose a shape and a colour for each kind, never a colour alone: 64 looks are distinct.

    Usual kinds look the same on every page; the others follow by name.
    """
    present = set(kinds)
    slots = {kind: slot for slot, kind in enumerate(_USUAL) if kind in present}
    others = sorted(present.difference(_USUAL))
    slots.update({kind: len(_USUAL) + place for place, kind in enumerate(others)})
    return tuple(
        Look(kind, _SHAPES[slot % len(_SHAPES)], (slot + slot // len(_SHAPES)) % COLOURS)
        for kind, slot in slots.items()
    )
