from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx

from mgl.memories.view import GraphView
from mgl.web.export import FORMAT, to_graphml, to_hif, to_html, to_json


def test_the_order_in_a_view_makes_no_difference(view: GraphView) -> None:
    shuffled = replace(view, nodes=view.nodes[::-1], edges=view.edges[::-1])
    for export in (to_json, to_graphml, to_html):
        assert export(view) == export(view) == export(shuffled)


def test_json_holds_the_whole_graph_and_its_exact_quotes(view: GraphView) -> None:
    read = json.loads(to_json(view))
    assert read["format"] == FORMAT
    for kind, names in (
        ("nodes", ("id", "kind", "label", "content", "step")),
        ("edges", ("id", "source", "target", "relation", "step")),
    ):
        expected = [{name: getattr(each, name) for name in names} for each in getattr(view, kind)]
        assert [{name: each[name] for name in names} for each in read[kind]] == sorted(
            expected, key=lambda each: str(each["id"])
        )
    for each in read["nodes"] + read["edges"]:
        assert each["quote"] == view.document.text[each["start"] : each["end"]]
    assert read["nodes"][2]["section"] == {"kind": "chapter", "label": "Two"}
    (answer,) = read["answers"]
    assert (answer["answer"], answer["confidence"]) == ("Ann did.", "high")
    assert [each["node_id"] for each in answer["citations"]] == ["n3", "gone"]
    assert answer["citations"][0]["quote"] == view.answers[0].citations[0].quote


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


def test_hostile_text_is_exported_whole(hostile: GraphView) -> None:
    written = to_graphml(hostile).encode()
    ElementTree.fromstring(written)
    graph = nx.read_graphml(io.BytesIO(written), force_multigraph=True)
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (3, 2)
    read = json.loads(to_json(hostile).encode())
    for each in read["nodes"] + read["edges"]:
        assert each["quote"] == hostile.document.text[each["start"] : each["end"]]


def test_hyperedges_layers_paths_and_what_is_gone_are_exported(
    hypergraph: GraphView, hierarchy: GraphView
) -> None:
    for view in (hypergraph, hierarchy):
        graph = nx.read_graphml(io.BytesIO(to_graphml(view).encode()), force_multigraph=True)
        exported = {each["id"]: each for each in json.loads(to_json(view))["nodes"]}
        for node in view.nodes:
            for read in (exported[node.id], graph.nodes[node.id]):
                said = read.get("hyperedge", False), read.get("layer", 0), read.get("gone")
                assert said == (node.hyperedge, node.layer, node.gone)
    read = json.loads(to_json(hierarchy))
    assert read["answers"][1]["paths"] == [["c4", "c3", "c2", "key"]]


def test_hypergraph_db_reads_the_hypergraph_as_it_is_now(
    hypergraph: GraphView, tmp_path: Path
) -> None:
    from hyperdb import HypergraphDB

    graph = HypergraphDB(storage_file=tmp_path / "none.hgdb")
    assert graph.from_hif(json.loads(to_hif(hypergraph)))
    assert graph.all_e == {("ann", "bo"), ("ann", "bo", "key"), ("ann", "may")}
    assert graph.nbr_v("key") == {"ann", "bo"}
    assert graph.e(("ann", "bo", "key"))["summary"] == "Ann found what Bo lost."
    assert graph.v("ann")["entity_type"] == "entity"
