"""A memory as hypergraph-db has it: in its own file, or in the interchange format it writes (HIF).

    write_hgdb(view, Path("memory.hgdb"))
    HypergraphDB(storage_file="memory.hgdb").nbr_v("xodar")        # or .draw(), in a browser

A point is a hyperedge over its entities, any other edge one over its two ends. The library knows a
hyperedge by its vertices: what is said of the same ones is said by one, under ``ids`` and in
``summary``. Only what the last step left is there. The file is a pickle of plain values; the page
that the library draws it on loads scripts from the web, that of ``mgl export --format html`` none.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from mgl.errors import ResourceError
from mgl.memories.hypergraph import make_hypergraph
from mgl.memories.view import GraphView
from mgl.web.arrange import arrange
from mgl.web.escape import json_text

__all__ = ["to_hif", "write_hgdb"]


def to_hif(view: GraphView) -> str:
    """Write the hypergraph as JSON in the Hypergraph Interchange Format; ValueError as exports."""
    return json_text(_hypergraph(view).to_hif())


def write_hgdb(view: GraphView, path: Path) -> None:
    """Write hypergraph-db's own file; ResourceError where that is not possible."""
    if not _hypergraph(view).save(path):
        raise ResourceError(f"cannot write {path}", hint="name a file in a writable folder")


def _hypergraph(view: GraphView) -> Any:
    """The hypergraph, with the names of data that the library's viewer shows."""
    now = arrange(view)
    now = now.at(now.length)
    points = {node.id: node for node in now.nodes if node.hyperedge}
    held: dict[str, set[str]] = defaultdict(set)
    said: dict[frozenset[str], list[tuple[str, str]]] = defaultdict(list)
    for edge in now.edges:
        if edge.source in points:
            held[edge.source].add(edge.target)
        else:
            said[frozenset((edge.source, edge.target))].append((edge.id, edge.relation))
    for point, joined in held.items():
        said[frozenset(joined)].append((point, points[point].content))
    vertices = {
        node.id: {"name": node.label, "entity_type": node.kind, "description": node.content}
        for node in now.nodes
        if not node.hyperedge
    }
    edges = []
    for ends, each in said.items():
        ids, texts = zip(*each, strict=True)
        edges.append((ends, {"id": ids[0], "ids": list(ids), "summary": "\n".join(texts)}))
    return make_hypergraph(vertices, edges)
