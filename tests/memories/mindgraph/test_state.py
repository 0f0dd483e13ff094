"""The graph under any sequence of edits: no dangling edge, no duplicate id, and a faithful log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from mgl.llm.grammar import to_ebnf, to_lark
from mgl.llm.schemas import compile_schema, json_schema, plain
from mgl.memories.log import Draft
from mgl.memories.mindgraph.edits import Block, Operations, Unfit, dispose, operations_schema
from mgl.memories.mindgraph.state import (
    EMPTY,
    VOCABULARY,
    AddEdge,
    AddNode,
    DeleteNode,
    Edit,
    EditNode,
    Graph,
    NodeType,
    apply,
    serialise,
)
from mgl.types import Chunk, Document

from .conftest import graph_of

TEXT = "Ann met Bo in Rome. Bo gave her a ring. She lost it at sea. He forgave her."
DOCUMENT = Document.from_text("tale.txt", TEXT)
BLOCK = Block.of(DOCUMENT, Chunk(3, DOCUMENT.span(0, len(TEXT)), TEXT, 20))
IDS = st.sampled_from(["ann", "bo", "ring", "sea", "short_id", "nobody"])
SOURCES = st.sampled_from(
    ["Ann met Bo in Rome.", "bo  gave her a ring", "She lost it", "not in the text at all"]
)


def node(name: str, start: int = 0, end: int = 7) -> AddNode:
    return AddNode(name, "entity", name, DOCUMENT.span(start, end), TEXT[start:end], 0)


def edge(source: str, target: str, relation: str = "knows") -> AddEdge:
    return AddEdge(source, target, relation, DOCUMENT.span(0, 7), TEXT[0:7], 0)


class Proposal(BaseModel):
    op: str
    id: str = "ann"
    src: str | int | None = None
    type: str = "entity"
    content: str = "content"
    source: str = "ann"
    target: str = "bo"
    relation: str = "knows"


proposals = st.builds(
    Proposal,
    op=st.sampled_from(["add_node", "add_edge", "edit_node", "delete_node"]),
    id=IDS,
    src=st.one_of(SOURCES, st.integers(-1, 6)),
    type=st.sampled_from(get_args(NodeType)),
    content=st.sampled_from(["one", "two"]),
    source=IDS,
    target=IDS,
    relation=st.sampled_from(["knows", "gave", "gave "]),
)


def dispose_all(sequence: Iterable[BaseModel], graph: Graph = EMPTY) -> Draft[Edit, Graph]:
    draft = Draft(VOCABULARY, 3, graph)
    for proposal in sequence:
        dispose(draft, proposal, BLOCK, call_key="k")
    return draft


@given(st.lists(proposals, max_size=40))
def test_no_sequence_of_proposals_breaks_the_graph_or_its_log(sequence: list[Proposal]) -> None:
    draft = dispose_all(sequence)
    graph, log = draft.state, draft.rows
    ids = [item.id for item in graph.nodes]
    assert len(ids) == len(set(ids))
    assert all(item.source in ids and item.target in ids for item in graph.edges)
    for item in (*graph.edges, *(source for node in graph.nodes for source in node.sources)):
        assert DOCUMENT.quote(item.span) == item.quote
    again = VOCABULARY.replay(log)
    assert dict(again.elements) == dict(graph.elements)
    assert again.hash == graph.hash
    assert len(log) == len(sequence)
    assert all((row.outcome == "applied") == (row.reason is None) for row in log)
    assert all((row.chunk, row.call_key) == (3, "k") for row in log)


def test_a_node_keeps_all_its_sources_the_latest_first() -> None:
    said = ["Ann met Bo in Rome.", "Bo gave her a ring.", "She lost it at sea.", "Ann met Bo"]
    edits = [
        Proposal(op="add_node", src=said[0], content="a guest"),
        Proposal(op="edit_node", src=said[1], content="a bride"),
        Proposal(op="add_node", src=said[2], content="a careless bride"),
        Proposal(op="edit_node", src=said[0], content="a guest again"),
    ]
    (ann,) = dispose_all(edits).state.nodes
    assert [source.quote for source in ann.sources] == [said[0], said[2], said[1]]
    assert (ann.quote, ann.chunk, ann.content) == (said[0], 3, "a guest again")


def test_the_edges_of_a_deleted_node_go_with_it() -> None:
    graph = graph_of([node("ann"), node("bo"), node("sea"), edge("ann", "bo"), edge("bo", "sea")])
    draft = dispose_all([Proposal(op="delete_node", id="bo")], graph)
    assert [row.op for row in draft.rows] == ["delete_node"]
    assert list(draft.state.elements) == ["ann", "sea"]


def test_serialisation_grows_at_its_end_while_elements_are_added() -> None:
    graph, before = EMPTY, ""
    for edit in [node("ann"), node("bo"), edge("ann", "bo"), node("sea"), edge("bo", "sea")]:
        graph = apply(graph, edit)
        text = serialise(graph).removesuffix("\n]")
        assert text.startswith(before)
        before = text if len(graph.elements) > 0 else ""


@pytest.mark.parametrize(
    "edit",
    [
        node("ann"),
        edge("ann", "nobody"),
        edge("ann", "bo"),
        EditNode("nobody", "x", 0, DOCUMENT.span(0, 3), "Ann"),
        DeleteNode("nobody", 0),
    ],
)
def test_apply_refuses_what_would_break_the_graph(edit: AddNode | AddEdge) -> None:
    graph = graph_of([node("ann"), node("bo"), edge("ann", "bo")])
    with pytest.raises(ValueError, match=r"exists|dangle|no node"):
        apply(graph, edit)


@pytest.mark.parametrize(
    ("proposal", "reason"),
    [
        (Proposal(op="add_node", id="short_id", src=TEXT[:19]), "placeholder_id"),
        (Proposal(op="add_node", id="12", src=TEXT[:19]), "meaningless_id"),
        (Proposal(op="add_node", id="sea", src="no such words here"), "quote_not_found"),
        (Proposal(op="add_node", id="sea", src=5), "unknown_sentence"),
        (Proposal(op="add_node", id="ann", content="ann", src=1), "duplicate_node"),
        (Proposal(op="add_edge", source="nobody", src=1), "unknown_source"),
        (Proposal(op="add_edge", target="nobody", src=1), "unknown_target"),
        (Proposal(op="add_edge", target="ann", src=1), "self_loop"),
        (Proposal(op="add_edge", src=1), "duplicate_edge"),
        (Proposal(op="edit_node", id="ann", content="ann", src=1), "nothing_changed"),
        (Proposal(op="edit_node", id="nobody", src=1), "unknown_id"),
    ],
)
def test_a_rejection_has_a_named_reason(proposal: Proposal, reason: str) -> None:
    graph = graph_of([node("ann"), node("bo"), edge("ann", "bo")])
    draft = dispose_all([proposal], graph)
    assert [(row.outcome, row.reason) for row in draft.rows] == [("rejected", reason)]
    assert draft.state is graph


class TestSchema:
    def schema(self, ids: list[str], cite: str = "sentence") -> type[Operations]:
        return operations_schema(ids, BLOCK, cite=cite, max_operations=3)  # type: ignore[arg-type]

    def test_ids_to_edit_or_delete_are_those_that_exist(self) -> None:
        good = {"op": "delete_node", "src": 1, "id": "ann"}
        both = [good, good | {"id": "bo"}]
        first, second = self.schema(["ann"]).model_validate({"operations": both}).operations
        assert first.id == "ann"
        assert isinstance(second, Unfit)

    @pytest.mark.parametrize(
        ("cite", "edit_node", "cited"),
        [
            ("quote", "printed", ["add_node", "add_edge"]),
            ("quote", "cited", ["add_node", "add_edge", "edit_node"]),
            ("sentence", "printed", ["add_node", "add_edge", "edit_node", "delete_node"]),
        ],
    )
    def test_which_edits_are_held_to_a_source(
        self, cite: Any, edit_node: Any, cited: list[str]
    ) -> None:
        schema = operations_schema(["ann"], BLOCK, cite=cite, edit_node=edit_node, max_operations=3)
        kinds = json_schema(schema)["properties"]["operations"]["items"]["oneOf"]
        held = [kind for kind in kinds if "src" in kind["properties"]]
        assert [kind["properties"]["op"]["const"] for kind in held] == cited
        assert all("src" in kind["required"] for kind in held)

    def test_a_quote_is_any_words_of_the_block_and_a_sentence_where_an_engine_knows_no_parts(
        self,
    ) -> None:
        described = json_schema(operations_schema([], BLOCK, cite="quote", max_operations=3))
        kinds = described["properties"]["operations"]["items"]["oneOf"]
        assert {kind["properties"]["src"]["substring"] for kind in kinds} == {BLOCK.chunk.text}
        sentences = [BLOCK.document.quote(span) for span in BLOCK.sentences]
        kinds = plain(described)["properties"]["operations"]["items"]["oneOf"]
        assert [kind["properties"]["src"] for kind in kinds] == [{"enum": sentences}] * 2
        grammar = compile_schema(described)
        assert "substring_chunks" in to_lark(grammar)
        assert '"Ann met Bo in Rome." | ' in to_ebnf(grammar)

    def test_a_quote_that_is_a_little_off_does_not_cost_the_reply(self) -> None:
        add = {"op": "add_node", "src": "Bo gave her  a ring", "id": "ring", "type": "entity"}
        reply = self.schema([], "quote").model_validate({"operations": [add | {"content": "x"}]})
        (row,) = dispose_all(reply.operations).rows
        assert (row.outcome, row.reason) == ("repaired", "quote_normalised")
        assert row.payload["quote"] == "Bo gave her a ring"
