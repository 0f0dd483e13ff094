"""A graph as JSON, GraphML, a page or a hypergraph (HIF): what ``mgl export`` writes.

    >>> from mgl.types import Document
    >>> document = Document.from_text("a.txt", "x")
    >>> view = GraphView("m1", "mindgraph", "model", document, (), 1, (), ())
    >>> json.loads(to_json(view))["nodes"]
    []

All depend on the view alone, whatever the order of its nodes and edges. Elements that a step took
away are there with that step (``gone``). The document's text is in the page; JSON and GraphML have
only the quotes of nodes and edges, a hypergraph none.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mgl.memories.hypergraph import make_hypergraph
from mgl.memories.results import answer_json
from mgl.memories.view import GraphView, ViewEdge, ViewNode, optional_fields
from mgl.types import Answer, Document, Section
from mgl.web.arrange import arrange
from mgl.web.escape import json_text, xml_text
from mgl.web.page import to_html

__all__ = ["FORMAT", "to_graphml", "to_hif", "to_html", "to_json"]

FORMAT: Final = "mgl-graph/1"


def to_json(view: GraphView) -> str:
    """Write graph and answers as JSON; ``quote`` is the document's characters start to end."""
    view = arrange(view)
    document = view.document
    return json_text(
        {
            "format": FORMAT,
            "memory_id": view.memory_id,
            "memory": view.memory,
            "model": view.model,
            "document": {
                "id": document.id,
                "name": document.name,
                "media_type": document.media_type,
                "characters": len(document.text),
                "notes": list(document.notes),
            },
            "questions": list(view.questions),
            "steps": view.steps,
            "nodes": [
                {
                    **{name: getattr(node, name) for name in ("id", "kind", "label", "content")},
                    **_source(document, node),
                }
                for node in view.nodes
            ],
            "edges": [
                {
                    **{name: getattr(edge, name) for name in ("id", "source", "target")},
                    "relation": edge.relation,
                    **_source(document, edge),
                }
                for edge in view.edges
            ],
            "answers": [_answer(answer) for answer in view.answers],
        }
    )


def to_graphml(view: GraphView) -> str:
    """Write the graph as GraphML: a directed multigraph, keyed by the edges' ids.

    Characters that XML forbids are dropped, also from ids, which then get a number if they collide.
    ``start`` and ``end`` still count the document's own characters.
    """
    import networkx as nx

    made = arrange(view).to_networkx()
    nodes = _distinct(made.nodes)
    edges = _distinct(key for *_, key in made.edges(keys=True))
    head = {**made.graph, "questions": json.dumps(view.questions)}
    graph: Any = nx.MultiDiGraph(**_to_xml(head))
    for node, data in made.nodes(data=True):
        graph.add_node(nodes[node], **_to_xml(data))
    for source, target, key, data in made.edges(keys=True, data=True):
        graph.add_edge(nodes[source], nodes[target], key=edges[key], **_to_xml(data))
    written = io.BytesIO()
    nx.write_graphml_xml(graph, written)
    return written.getvalue().decode("utf-8").replace("\r", "&#13;") + "\n"


def _source(document: Document, element: ViewNode | ViewEdge) -> dict[str, Any]:
    span = element.span
    return {
        "start": span.start,
        "end": span.end,
        "quote": document.quote(span),
        "section": _section(document.section_at(span.start)),
        "step": element.step,
        **optional_fields(element),
    }


def _to_xml(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: xml_text(value) if isinstance(value, str) else value for name, value in fields.items()
    }


def _section(section: Section | None) -> dict[str, str] | None:
    return None if section is None else {"kind": section.kind, "label": section.label}


def _answer(answer: Answer) -> dict[str, Any]:
    said = answer_json(answer)
    for citation, shown in zip(answer.citations, said["citations"], strict=True):
        shown["section"] = _section(citation.section)
    return said


def _distinct(ids: Iterable[str]) -> Mapping[str, str]:
    """Map each id to one that XML can hold, no two the same."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for each in ids:
        name = clean = xml_text(each)
        number = 2
        while name in taken:
            name, number = f"{clean}~{number}", number + 1
        taken.add(name)
        names[each] = name
    return names


def to_hif(view: GraphView) -> str:
    """Write the hypergraph as the last step left it, in the Hypergraph Interchange Format.

    A point is a hyperedge over its entities, any other edge one over its two ends. hypergraph-db
    knows a hyperedge by its vertices: what is said of the same ones is said by one, under ``ids``
    and in ``summary``.
    """
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
    return json_text(make_hypergraph(vertices, edges).to_hif())
