"""A memory's hyperedges in hypergraph-db, the library that the paper names (HGMem §4.2).

    >>> graph = make_hypergraph({"ann": {}, "bo": {}}, [({"ann", "bo"}, {})])
    >>> graph.nbr_v("ann")
    {'bo'}

The library knows a hyperedge by its set of vertices, so two with the same set are one. Made as it
is, it would unpickle a file of its default name from the current folder: here nothing is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any


def make_hypergraph(
    vertices: Mapping[str, Mapping[str, Any]],
    edges: Iterable[tuple[Collection[str], Mapping[str, Any]]],
) -> Any:
    """Make a HypergraphDB of vertices and hyperedges, each with its data."""
    graph = _in_memory()()
    for vertex, data in vertices.items():
        graph.add_v(vertex, dict(data))
    for held, data in edges:
        graph.add_e(sorted(held), dict(data))
    return graph


@cache
def _in_memory() -> Any:
    from hyperdb import HypergraphDB

    class InMemory(HypergraphDB):  # type: ignore[misc]
        def __post_init__(self) -> None:
            """Load nothing."""

    return InMemory
