"""A view put in one order and checked, so that what is exported is the same every time.

    >>> from mgl.types import Document
    >>> document = Document.from_text("a.txt", "x")
    >>> view = GraphView("m1", "mindgraph", "model", document, (), 1, (), ())
    >>> arranged(view) == view
    True

It checks what an exporter relies on, not whether a quote supports what its node says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mgl.web.view import GraphView

__all__ = ["arranged"]


def arranged(view: GraphView) -> GraphView:
    """The view with nodes and edges by id; ValueError if it contradicts itself."""
    _unique("node", (node.id for node in view.nodes))
    _unique("edge", (edge.id for edge in view.edges))
    known = {node.id for node in view.nodes}
    for edge in view.edges:
        for end in (edge.source, edge.target):
            if end not in known:
                raise ValueError(f"edge {edge.id!r} names node {end!r}, which is not in the view")
    for span in [*(node.span for node in view.nodes), *(edge.span for edge in view.edges)]:
        view.document.quote(span)
    return replace(
        view,
        nodes=tuple(sorted(view.nodes, key=lambda node: node.id)),
        edges=tuple(sorted(view.edges, key=lambda edge: edge.id)),
    )


def _unique(noun: str, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for each in ids:
        if each in seen:
            raise ValueError(f"{noun} id {each!r} is in the view twice")
        seen.add(each)
