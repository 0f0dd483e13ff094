from __future__ import annotations

import io
import json
from dataclasses import replace
from xml.etree import ElementTree

import networkx as nx
import pytest

from mgl.memories.view import GraphView
from mgl.types import Document, Span
from mgl.web.export import FORMAT, to_graphml, to_html, to_json


def shuffled(view: GraphView) -> GraphView:
    return replace(view, nodes=view.nodes[::-1], edges=view.edges[::-1])


@pytest.mark.parametrize("export", [to_json, to_graphml, to_html])
def test_the_order_in_a_view_makes_no_difference(view: GraphView, export: object) -> None:
    assert callable(export)
    assert export(view) == export(view) == export(shuffled(view))


def test_json_holds_the_whole_graph_and_its_exact_quotes(view: GraphView) -> None:
    read = json.loads(to_json(view))
    assert read["format"] == FORMAT
    assert read["document"]["characters"] == len(view.document.text)
    assert [each["id"] for each in read["nodes"]] == ["n1", "n2", "n3", "n4"]
    by_id = {node.id: node for node in view.nodes}
    for each in read["nodes"]:
        node = by_id[each["id"]]
        assert (each["kind"], each["label"], each["content"], each["step"]) == (
            node.kind,
            node.label,
            node.content,
            node.step,
        )
    edges = {edge.id: (edge.source, edge.target, edge.relation, edge.step) for edge in view.edges}
    assert {
        each["id"]: (each["source"], each["target"], each["relation"], each["step"])
        for each in read["edges"]
    } == edges
    for each in read["nodes"] + read["edges"]:
        assert each["quote"] == view.document.text[each["start"] : each["end"]]
    assert read["nodes"][2]["section"] == {"kind": "chapter", "label": "Two"}


def test_json_holds_the_answers(view: GraphView) -> None:
    (answer,) = json.loads(to_json(view))["answers"]
    assert (answer["answer"], answer["confidence"]) == ("Ann did.", "high")
    assert [each["node_id"] for each in answer["citations"]] == ["n3", "gone"]
    assert answer["citations"][0]["quote"] == view.answers[0].citations[0].quote
    assert answer["compaction_ratio"] == 0.5


def test_graphml_reads_back_with_every_attribute(view: GraphView) -> None:
    read = nx.read_graphml(io.BytesIO(to_graphml(view).encode()), force_multigraph=True)
    assert read.is_directed()
    assert dict(read.nodes(data=True)) == {
        node.id: {
            "kind": node.kind,
            "label": node.label,
            "content": node.content,
            "start": node.span.start,
            "end": node.span.end,
            "quote": view.document.quote(node.span),
            "chapter": "One" if node.step == 0 else "Two",
            "step": node.step,
        }
        for node in view.nodes
    }
    assert {
        (source, target, key): (data["relation"], data["start"], data["end"], data["quote"])
        for source, target, key, data in read.edges(keys=True, data=True)
    } == {
        (edge.source, edge.target, edge.id): (
            edge.relation,
            edge.span.start,
            edge.span.end,
            view.document.quote(edge.span),
        )
        for edge in view.edges
    }
    assert json.loads(read.graph["questions"]) == list(view.questions)


def test_graphml_of_hostile_text_is_valid_and_loses_no_element(hostile: GraphView) -> None:
    written = to_graphml(hostile).encode()
    ElementTree.fromstring(written)
    read = nx.read_graphml(io.BytesIO(written), force_multigraph=True)
    assert (read.number_of_nodes(), read.number_of_edges()) == (3, 2)


def test_json_of_hostile_text_keeps_every_character(hostile: GraphView) -> None:
    read = json.loads(to_json(hostile).encode())
    assert {each["id"] for each in read["nodes"]} == {node.id for node in hostile.nodes}
    for each in read["nodes"] + read["edges"]:
        assert each["quote"] == hostile.document.text[each["start"] : each["end"]]


def test_hyperedges_and_what_is_gone_are_exported(hypergraph: GraphView) -> None:
    read = json.loads(to_json(hypergraph))
    marked = {each["id"]: (each.get("hyperedge"), each.get("gone")) for each in read["nodes"]}
    assert marked["ann"] == (None, None)
    assert marked["p0"] == (True, 1)
    assert marked["p3"] == (True, None)
    assert {each["id"] for each in read["edges"] if "gone" in each} == {
        "p0-ann",
        "p0-bo",
        "p1-bo",
        "p1-key",
        "p2-ann",
        "p2-key",
    }
    graph = nx.read_graphml(io.BytesIO(to_graphml(hypergraph).encode()), force_multigraph=True)
    assert graph.nodes["p0"]["gone"] == 1
    assert graph.nodes["p0"]["hyperedge"] is True
    assert "gone" not in graph.nodes["p3"]
    assert "hyperedge" not in graph.nodes["ann"]


def test_layers_and_paths_are_exported(hierarchy: GraphView) -> None:
    read = json.loads(to_json(hierarchy))
    assert {each["id"]: each["layer"] for each in read["nodes"] if "layer" in each} == {
        "c1": 1,
        "c2": 1,
        "c3": 2,
        "c4": 3,
    }
    assert read["answers"][1]["paths"] == [["c4", "c3", "c2", "key"]]
    graph = nx.read_graphml(io.BytesIO(to_graphml(hierarchy).encode()), force_multigraph=True)
    assert graph.nodes["c4"]["layer"] == 3
    assert "layer" not in graph.nodes["ann"]
    assert graph.has_edge("c1", "bo")
    assert graph.has_edge("c2", "bo")


@pytest.mark.parametrize("export", [to_json, to_graphml, to_html])
@pytest.mark.parametrize(
    ("layers", "hyperedge"), [((0, 1), False), ((1, 1), False), ((-1, 0), False), ((1, 0), True)]
)
def test_a_hierarchy_that_leads_nowhere_down_is_refused(
    view: GraphView, export: object, layers: tuple[int, int], hyperedge: bool
) -> None:
    assert callable(export)
    source, target = (
        replace(node, layer=layer, hyperedge=hyperedge and layer > 0)
        for node, layer in zip(view.nodes[1::-1], layers, strict=True)
    )
    with pytest.raises(ValueError, match="layer"):
        export(replace(view, nodes=(source, target), edges=view.edges[1:2], answers=()))


def test_an_empty_graph_is_exported(view: GraphView) -> None:
    empty = replace(view, document=Document.from_text("e.txt", ""), nodes=(), edges=(), answers=())
    assert json.loads(to_json(empty))["nodes"] == []
    assert nx.parse_graphml(to_graphml(empty)).number_of_nodes() == 0


@pytest.mark.parametrize("export", [to_json, to_graphml, to_html])
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda view: replace(view, nodes=view.nodes + view.nodes[:1]), "twice"),
        (lambda view: replace(view, edges=view.edges + view.edges[:1]), "twice"),
        (lambda view: replace(view, nodes=view.nodes[1:]), "not in the view"),
        (
            lambda view: replace(view, edges=(replace(view.edges[0], gone=0),)),
            "gone at step 0, before step 1",
        ),
        (lambda view: replace(view, document=Document.from_text("b", "short")), "not a span"),
        (
            lambda view: replace(
                view,
                edges=(replace(view.edges[0], span=Span(view.document.id, 0, 9999)),),
            ),
            "not a span",
        ),
    ],
)
def test_a_view_that_contradicts_itself_is_refused(
    view: GraphView, export: object, fault: object, said: str
) -> None:
    assert callable(export)
    assert callable(fault)
    with pytest.raises(ValueError, match=said):
        export(fault(view))
