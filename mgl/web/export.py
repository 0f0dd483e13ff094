"""A graph as JSON, as GraphML and as a page: what ``mgl export`` writes.

    >>> from mgl.types import Document
    >>> document = Document.from_text("a.txt", "x")
    >>> view = GraphView("m1", "mindgraph", "model", document, (), 1, (), ())
    >>> json.loads(to_json(view))["nodes"]
    []

All three are functions of the view alone: nodes and edges are sorted by id, so the order in which
a memory lists them makes no difference. Each raises ValueError for a view that contradicts itself
(an id twice, an edge to nowhere, a span outside the document). The document's text is in the page,
and in JSON and GraphML only as the quotes of its nodes and edges.

Where a step took elements away, all three hold them too, with that step (``gone``); a node that is
a hyperedge says so (``hyperedge``), a category its layer (``layer``).
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mgl.memories.view import GraphView
from mgl.types import Answer, Citation, Document, Section, Span
from mgl.web.arrange import arranged, marks
from mgl.web.escape import json_text, xml_text
from mgl.web.page import to_html

__all__ = ["FORMAT", "to_graphml", "to_html", "to_json"]

FORMAT: Final = "mgl-graph/1"


def to_json(view: GraphView) -> str:
    """The graph with its answers; every ``quote`` is the document's characters start to end."""
    view = arranged(view)
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
                    "id": node.id,
                    "kind": node.kind,
                    "label": node.label,
                    "content": node.content,
                    **_source(document, node.span),
                    "step": node.step,
                    **marks(node),
                }
                for node in view.nodes
            ],
            "edges": [
                {
                    "id": edge.id,
                    "source": edge.source,
                    "target": edge.target,
                    "relation": edge.relation,
                    **_source(document, edge.span),
                    "step": edge.step,
                    **marks(edge),
                }
                for edge in view.edges
            ],
            "answers": [_answer(answer) for answer in view.answers],
        }
    )


def to_graphml(view: GraphView) -> str:
    """The graph for graph tools, as a directed multigraph whose edge keys are the edges' ids.

    Characters that XML forbids are left out, also of ids; two ids that become one are told apart
    by a number. ``start`` and ``end`` still count the document's own characters.
    """
    import networkx as nx

    view = arranged(view)
    document = view.document
    graph: Any = nx.MultiDiGraph(
        memory_id=xml_text(view.memory_id),
        memory=xml_text(view.memory),
        model=xml_text(view.model),
        document=xml_text(document.name),
        document_id=document.id,
        questions=json.dumps(view.questions),
        steps=view.steps,
    )
    nodes = _distinct(node.id for node in view.nodes)
    edges = _distinct(edge.id for edge in view.edges)
    for node in view.nodes:
        graph.add_node(
            nodes[node.id],
            kind=xml_text(node.kind),
            label=xml_text(node.label),
            content=xml_text(node.content),
            **_flat_source(document, node.span),
            step=node.step,
            **marks(node),
        )
    for edge in view.edges:
        graph.add_edge(
            nodes[edge.source],
            nodes[edge.target],
            key=edges[edge.id],
            relation=xml_text(edge.relation),
            **_flat_source(document, edge.span),
            step=edge.step,
            **marks(edge),
        )
    written = io.BytesIO()
    nx.write_graphml_xml(graph, written)
    return written.getvalue().decode("utf-8").replace("\r", "&#13;") + "\n"


def _source(document: Document, span: Span) -> dict[str, Any]:
    return {
        "start": span.start,
        "end": span.end,
        "quote": document.quote(span),
        "section": _section(document.section_at(span.start)),
    }


def _flat_source(document: Document, span: Span) -> dict[str, str | int]:
    section = document.section_at(span.start)
    flat: dict[str, str | int] = {
        "start": span.start,
        "end": span.end,
        "quote": xml_text(document.quote(span)),
    }
    if section is not None:
        flat[section.kind] = xml_text(section.label)
    return flat


def _section(section: Section | None) -> dict[str, str] | None:
    return None if section is None else {"kind": section.kind, "label": section.label}


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "question": answer.question,
        "answer": answer.text,
        "confidence": answer.confidence,
        "citations": [_citation(citation) for citation in answer.citations],
        "marks": list(answer.marks),
        "compaction_ratio": answer.compaction_ratio,
        "trace": list(answer.trace),
        "paths": [list(path) for path in answer.paths],
    }


def _citation(citation: Citation) -> dict[str, Any]:
    return {
        "node_id": citation.node_id,
        "document": citation.document,
        "start": citation.span.start,
        "end": citation.span.end,
        "quote": citation.quote,
        "section": _section(citation.section),
    }


def _distinct(ids: Iterable[str]) -> Mapping[str, str]:
    """Each id as XML can hold it, no two the same."""
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
