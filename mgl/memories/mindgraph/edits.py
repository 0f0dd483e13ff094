"""The four edits a model may propose, and how a proposal becomes a resolved edit.

Source: MindGraph §3.2 and D.1. Proposals are pydantic models, made per call, because the ids that
may be edited or deleted are an enum of the ids that exist and a sentence number is one of the
block's. In every proposal the source comes before the claim. ``dispose`` checks a proposal
against the graph and the block: it is applied, repaired (with how), or rejected (with why).

§3.2 says that every edit carries a quote, D.1 prints none for edit_node and delete_node. With
``quote`` we follow D.1; with ``sentence`` all four cite.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.llm.constraints import max_chars, new_id, number, one_of, part_of, sentence_of
from mgl.memories.mindgraph.state import (
    AddEdge,
    AddNode,
    DeleteEdge,
    DeleteNode,
    EditNode,
    Graph,
    NodeType,
    ResolvedEdit,
    edge_id,
)
from mgl.store import EditRecord
from mgl.text import locate, numbered_sentences
from mgl.types import Chunk, Document, Span

__all__ = ["Block", "Operations", "dispose", "operations_schema", "record", "resolved"]

CONTENT_CHARS = 400
QUOTE_CHARS = 600
EDIT_TOKENS = 170
# Bounded in characters: a relation in snake_case is one word, which a bound in words lets run on.
RELATION_PATTERN = r"^[^\s\"\\][^\t\n\r\"\\]{0,49}$"
PLACEHOLDERS = frozenset({"short_id", "id1", "id2", "existing_id", "old_id", "node_id"})


class _Proposal(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Operations(BaseModel):
    """A build reply: edits in the order in which they are to be applied."""

    operations: list[Any]


@dataclass(frozen=True, slots=True)
class Block:
    """A chunk as it is shown to the model: its sentences are numbered from 1."""

    document: Document
    chunk: Chunk
    sentences: tuple[Span, ...]

    def numbered(self) -> str:
        """The block's text with ``[n]`` before each sentence."""
        sentences = [(span.start, span.end) for span in self.sentences]
        whole = self.chunk.span
        return numbered_sentences(self.document.text, sentences, whole.start, whole.end)


def operations_schema(
    node_ids: Sequence[str],
    block: Block,
    *,
    cite: Literal["quote", "sentence"],
    quote: Literal["sentence", "part"] = "sentence",
    max_operations: int,
) -> type[Operations]:
    """The schema of a build reply on ``block`` while ``node_ids`` exist.

    Lengths and counts are bounded: an edit takes ``EDIT_TOKENS`` at most beside its source.
    """
    content = Annotated[str, Field(min_length=1), max_chars(CONTENT_CHARS)]
    relation = new_id(RELATION_PATTERN)
    source: Any
    if cite == "sentence":
        source = number(1, len(block.sentences))
    elif quote == "sentence":
        source = sentence_of([block.document.quote(span) for span in block.sentences])
    else:
        source = part_of(block.chunk.text, QUOTE_CHARS)
    cited: dict[str, Any] = {"src": (source, ...)}
    optionally = cited if cite == "sentence" else {}

    def proposal(name: str, **fields: Any) -> type[BaseModel]:
        op: Any = Literal[name]
        return create_model(name, __base__=_Proposal, op=(op, ...), **fields)

    kinds = [
        proposal(
            "add_node", **cited, id=(new_id(), ...), type=(NodeType, ...), content=(content, ...)
        ),
        proposal(
            "add_edge",
            **cited,
            source=(new_id(), ...),
            target=(new_id(), ...),
            relation=(relation, ...),
        ),
    ]
    if node_ids:
        known = one_of(node_ids)
        kinds += [
            proposal("edit_node", **optionally, id=(known, ...), content=(content, ...)),
            proposal("delete_node", **optionally, id=(known, ...)),
        ]
    union: Any = kinds[0]
    for kind in kinds[1:]:
        union = union | kind
    edit = Annotated[union, Field(discriminator="op")]
    return create_model(
        "operations",
        __base__=Operations,
        operations=(Annotated[list[edit], Field(max_length=max_operations)], ...),
    )


@dataclass(frozen=True, slots=True)
class _Cited:
    span: Span
    quote: str
    repair: str | None = None
    score: float | None = None


class _RejectionError(Exception):
    """Why a proposal cannot be applied, as the counter is called."""


def dispose(
    graph: Graph, proposal: BaseModel, block: Block, *, quote_floor: float, call_key: str | None
) -> list[tuple[EditRecord, ResolvedEdit | None]]:
    """What becomes of one proposal: records for the log, each with the edit to apply, if any.

    Deleting a node comes as several: one delete_edge for each edge that goes with it.
    """
    fields = proposal.model_dump()
    try:
        edits, cited = _resolve(graph, fields, block, quote_floor)
    except _RejectionError as why:
        rejected = EditRecord(
            block.chunk.index, fields["op"], fields, "rejected", str(why), call_key=call_key
        )
        return [(rejected, None)]
    return [(record(edit, cited.repair, cited.score, call_key), edit) for edit in edits]


def _resolve(
    graph: Graph, fields: Mapping[str, Any], block: Block, quote_floor: float
) -> tuple[list[ResolvedEdit], _Cited]:
    chunk = block.chunk.index
    match fields["op"]:
        case "add_node":
            _refuse_placeholder(fields["id"])
            cited = _cite(fields["src"], block, quote_floor)
            known = graph.node(fields["id"])
            if known is not None and known.content == fields["content"]:
                raise _RejectionError("duplicate_node")
            if known is not None:
                merged = EditNode(fields["id"], fields["content"], chunk, cited.span, cited.quote)
                return [merged], _Cited(cited.span, cited.quote, "merged_into_existing_id")
            added = AddNode(
                fields["id"], fields["type"], fields["content"], cited.span, cited.quote, chunk
            )
            return [added], cited
        case "add_edge":
            source, target = fields["source"], fields["target"]
            if graph.node(source) is None:
                raise _RejectionError("unknown_source")
            if graph.node(target) is None:
                raise _RejectionError("unknown_target")
            if source == target:
                raise _RejectionError("self_loop")
            relation = " ".join(fields["relation"].split())
            if edge_id(source, relation, target) in graph.elements:
                raise _RejectionError("duplicate_edge")
            cited = _cite(fields["src"], block, quote_floor)
            return [AddEdge(source, target, relation, cited.span, cited.quote, chunk)], cited
        case "edit_node" | "delete_node" as op:
            node = graph.node(fields["id"])
            if node is None:
                raise _RejectionError("unknown_id")
            source_given = fields.get("src")
            cited = (
                _Cited(node.span, node.quote)
                if source_given is None
                else _cite(source_given, block, quote_floor)
            )
            span, quote = (None, None) if source_given is None else (cited.span, cited.quote)
            if op == "edit_node":
                if fields["content"] == node.content:
                    raise _RejectionError("nothing_changed")
                return [EditNode(node.id, fields["content"], chunk, span, quote)], cited
            edges: list[ResolvedEdit] = [
                DeleteEdge(edge.source, edge.target, edge.relation, chunk)
                for edge in graph.edges_of(node.id)
            ]
            return [*edges, DeleteNode(node.id, chunk, span, quote)], cited
        case other:
            raise AssertionError(f"the schema admits no {other}")


def _refuse_placeholder(node_id: str) -> None:
    if node_id in PLACEHOLDERS:
        raise _RejectionError("placeholder_id")
    if not re.search(r"[a-z]", node_id):
        raise _RejectionError("meaningless_id")


def _cite(source: str | int, block: Block, quote_floor: float) -> _Cited:
    document, whole = block.document, block.chunk.span
    if isinstance(source, int):
        if not 1 <= source <= len(block.sentences):
            raise _RejectionError("unknown_sentence")
        span = block.sentences[source - 1]
        return _Cited(span, document.quote(span))
    found = locate(source, document.text, whole.start, whole.end, floor=quote_floor)
    if found is None:
        raise _RejectionError("quote_not_found")
    span = document.span(found.start, found.end)
    repair = None if found.method == "exact" else f"quote_{found.method}"
    return _Cited(span, document.quote(span), repair, None if repair is None else found.score)


_OPS: Mapping[type, str] = {
    AddNode: "add_node",
    AddEdge: "add_edge",
    EditNode: "edit_node",
    DeleteNode: "delete_node",
    DeleteEdge: "delete_edge",
}
_EDITS = {op: kind for kind, op in _OPS.items()}


def record(
    edit: ResolvedEdit,
    repair: str | None = None,
    score: float | None = None,
    call_key: str | None = None,
) -> EditRecord:
    """An edit that is applied, as the log keeps it."""
    payload = {name: value for name, value in asdict(edit).items() if name not in {"span", "chunk"}}
    span = None if isinstance(edit, DeleteEdge) else edit.span
    outcome: Literal["applied", "repaired"] = "applied" if repair is None else "repaired"
    return EditRecord(edit.chunk, _OPS[type(edit)], payload, outcome, repair, span, score, call_key)


def resolved(row: EditRecord) -> ResolvedEdit | None:
    """The edit that a row of the log stands for; None where it was rejected."""
    if row.outcome == "rejected":
        return None
    kind = _EDITS[row.op]
    fields = dict(row.payload) | {"chunk": row.chunk}
    if kind is not DeleteEdge:
        fields["span"] = row.span
    edit: ResolvedEdit = kind(**fields)
    return edit
