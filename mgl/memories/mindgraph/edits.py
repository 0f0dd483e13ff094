"""What a model may propose, and what becomes of each proposal.

Source: MindGraph §3.2 and D.1. Proposals are pydantic models, made per call, because the ids that
may be edited or deleted are an enum of the ids that exist and a source is one of the block's. In
every proposal the source comes before the claim. Proposals are judged one by one: one that is not
of its form is ``Unfit``, and costs no other; ``dispose`` checks the others against the graph and
the block: each is applied, repaired (with how), or rejected (with why).

§3.2 says that every edit carries a quote, D.1 prints none for edit_node and delete_node. They are
not asked for one, as printed, and an edited node keeps its span; a quote that is given is taken.
With ``edit_node=cited`` an edit that changes what a node says needs one, with ``sentence`` every
edit needs its number.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated, Any, Final, Literal, TypeAlias, Union

from pydantic import (
    BaseModel,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    create_model,
)
from pydantic.json_schema import SkipJsonSchema

from mgl.llm.constraints import max_chars, new_id, number, one_of, part_of
from mgl.memories.log import Draft
from mgl.memories.mindgraph.state import (
    AddEdge,
    AddNode,
    DeleteNode,
    Edit,
    EditNode,
    Graph,
    NodeType,
)
from mgl.memories.propose import StrictReply
from mgl.text import locate, numbered_sentences, sentence_spans
from mgl.text.groups import mark_days
from mgl.types import Chunk, Document, Span

CONTENT_CHARS: Final = 400
QUOTE_CHARS: Final = 600
QUOTE_FLOOR: Final = 0.9
"""The least likeness of a quote that is a little off."""
PROBLEM_CHARS: Final = 200
EDIT_TOKENS: Final = 170
"""An edit's tokens beside its source, at most."""
# Bounded in characters: a relation in snake_case is one word, which a bound in words lets run on.
RELATION_PATTERN = r"^[^\s\"\\][^\t\n\r\"\\]{0,49}$"
PLACEHOLDERS = frozenset({"short_id", "id1", "id2", "existing_id", "old_id", "node_id"})
HARMLESS: Final = frozenset({"duplicate_node", "duplicate_edge", "nothing_changed"})
"""Rejected without a loss: the graph says it already."""


Unasked: TypeAlias = SkipJsonSchema[str | None]
"""A source that no schema asks for, and that is taken where it is given."""


class Operations(BaseModel):
    """A build reply: edits, or ``Unfit``, in the order in which they are to be applied."""

    operations: list[Any]


@dataclass(frozen=True, slots=True)
class Unfit:
    """A proposal that is not of its form, or was rejected: as it was made, and what is wrong."""

    made: Mapping[str, Any]
    problem: str


@dataclass(frozen=True, slots=True)
class Block:
    """A chunk as it is shown to the model: its sentences are numbered from 1."""

    document: Document
    chunk: Chunk
    sentences: tuple[Span, ...]

    @classmethod
    def of(cls, document: Document, chunk: Chunk) -> Block:
        ranges = sentence_spans(document.text, chunk.span.start, chunk.span.end)
        return cls(document, chunk, tuple(document.span(start, end) for start, end in ranges))

    def halve(self) -> tuple[Block, Block]:
        """Split the block between two sentences, near its middle; it has two at least."""
        chunk, document = self.chunk, self.document
        middle = (chunk.span.start + chunk.span.end) // 2
        cut = min((span.start for span in self.sentences[1:]), key=lambda at: abs(at - middle))

        def take(start: int, end: int) -> Block:
            span, share = document.span(start, end), (end - start) / len(chunk.text)
            tokens = ceil(chunk.tokens * share)
            part = Chunk(chunk.index, span, document.quote(span), tokens)
            return Block.of(document, part)

        return take(chunk.span.start, cut), take(cut, chunk.span.end)

    def number_sentences(self) -> str:
        """The block's text with ``[n]`` before each sentence."""
        sentences = [(span.start, span.end) for span in self.sentences]
        start, end = self.chunk.span.start, self.chunk.span.end
        days = mark_days(self.document, start, end)
        return numbered_sentences(self.document.text, sentences, start, end, marks=days)


def operations_schema(
    node_ids: Sequence[str],
    block: Block,
    *,
    cite: Literal["quote", "sentence"],
    edit_node: Literal["printed", "cited"] = "printed",
    max_operations: int,
) -> type[Operations]:
    """The schema of a build reply on ``block`` while ``node_ids`` exist; ``cite`` and ``edit_node``
    as in ``MindGraphConfig``.

    Decoding is held to lengths and counts where the engine can: an edit takes ``EDIT_TOKENS`` at
    most beside its source. Validation takes longer lists, and calls what does not fit ``Unfit``.
    """
    content = Annotated[str, Field(min_length=1), max_chars(CONTENT_CHARS)]
    start = block.chunk.span.start
    source: Any
    if cite == "sentence":
        source = number(1, len(block.sentences))
    else:
        ranges = [(span.start - start, span.end - start) for span in block.sentences]
        source = part_of(block.chunk.text, QUOTE_CHARS, ranges)
    cited: dict[str, Any] = {"src": (source, ...)}
    unasked: dict[str, Any] = {"src": (Unasked, None)}
    is_cited = cite == "sentence"

    def proposal(name: str, **fields: Any) -> type[BaseModel]:
        op: Any = Literal[name]
        return create_model(name, __base__=StrictReply, op=(op, ...), **fields)

    kinds = [
        proposal(
            "add_node", **cited, id=(new_id(), ...), type=(NodeType, ...), content=(content, ...)
        ),
        proposal(
            "add_edge",
            **cited,
            source=(new_id(), ...),
            target=(new_id(), ...),
            relation=(new_id(RELATION_PATTERN), ...),
        ),
    ]
    if node_ids:
        known = one_of(node_ids)
        kinds += [
            proposal(
                "edit_node",
                **(cited if is_cited or edit_node == "cited" else unasked),
                id=(known, ...),
                content=(content, ...),
            ),
            proposal("delete_node", **(cited if is_cited else unasked), id=(known, ...)),
        ]
    union: Any = Union[tuple(kinds)]  # noqa: UP007
    edit = Annotated[union, Field(discriminator="op"), WrapValidator(_judge_alone)]
    bounds = Field(json_schema_extra={"maxItems": max_operations})
    return create_model("operations", __base__=Operations, operations=(list[edit], bounds))


def _judge_alone(made: Any, judge: ValidatorFunctionWrapHandler) -> Any:
    try:
        return judge(made)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in first["loc"][1:])
        problem = f"{field}: {first['msg']}" if field else first["msg"]
        return Unfit(made if isinstance(made, dict) else {"made": made}, problem[:PROBLEM_CHARS])


@dataclass(frozen=True, slots=True)
class _Cited:
    span: Span
    quote: str
    repair: str | None = None
    score: float | None = None


class _RejectionError(Exception):
    """A proposal cannot be applied; the message is the reason its row has."""


def dispose(
    draft: Draft[Edit, Graph],
    proposal: BaseModel | Unfit,
    block: Block,
    *,
    call_key: str | None,
) -> Unfit | None:
    """Apply, repair or reject one proposal in the draft of its chunk. Returns what was wrong with
    it, unless the graph says the same already."""
    if isinstance(proposal, Unfit):
        made, op = {**proposal.made, "problem": proposal.problem}, str(proposal.made.get("op"))
        draft.reject(op, made, "invalid_edit", call_key=call_key)
        return proposal
    fields = proposal.model_dump()
    try:
        edit, cited = _resolve(draft.state, fields, block)
    except _RejectionError as error:
        why = str(error)
        draft.reject(fields["op"], fields, why, call_key=call_key)
        return None if why in HARMLESS else Unfit(fields, why.replace("_", " "))
    draft.put(edit, repaired=cited.repair, score=cited.score, call_key=call_key)
    return None


def _resolve(graph: Graph, fields: Mapping[str, Any], block: Block) -> tuple[Edit, _Cited]:
    chunk = block.chunk.index
    match fields["op"]:
        case "add_node":
            _refuse_placeholder(fields["id"])
            cited = _cite(fields["src"], block)
            known, content = graph.node(fields["id"]), fields["content"]
            if known is None:
                kind = fields["type"]
                return AddNode(fields["id"], kind, content, cited.span, cited.quote, chunk), cited
            if known.content == content:
                raise _RejectionError("duplicate_node")
            merged = EditNode(known.id, content, chunk, cited.span, cited.quote)
            return merged, _Cited(cited.span, cited.quote, "merged_into_existing_id")
        case "add_edge":
            source, target = fields["source"], fields["target"]
            relation = " ".join(fields["relation"].split())
            if graph.node(source) is None:
                raise _RejectionError("unknown_source")
            if graph.node(target) is None:
                raise _RejectionError("unknown_target")
            if source == target:
                raise _RejectionError("self_loop")
            if graph.has_edge(source, relation, target):
                raise _RejectionError("duplicate_edge")
            cited = _cite(fields["src"], block)
            return AddEdge(source, target, relation, cited.span, cited.quote, chunk), cited
        case op:
            node = graph.node(fields["id"])
            if node is None:
                raise _RejectionError("unknown_id")
            if op == "edit_node" and fields["content"] == node.content:
                raise _RejectionError("nothing_changed")
            cited, span, quote = _Cited(node.span, node.quote), None, None
            if (given := fields.get("src")) is not None:
                cited = _cite(given, block)
                span, quote = cited.span, cited.quote
            if op == "edit_node":
                return EditNode(node.id, fields["content"], chunk, span, quote), cited
            return DeleteNode(node.id, chunk, span, quote), cited


def _refuse_placeholder(node_id: str) -> None:
    if node_id in PLACEHOLDERS:
        raise _RejectionError("placeholder_id")
    if not re.search(r"[a-z]", node_id):
        raise _RejectionError("meaningless_id")


def _cite(source: str | int, block: Block) -> _Cited:
    document, whole = block.document, block.chunk.span
    if isinstance(source, int):
        if not 1 <= source <= len(block.sentences):
            raise _RejectionError("unknown_sentence")
        span = block.sentences[source - 1]
        return _Cited(span, document.quote(span))
    found = locate(source, document.text, whole.start, whole.end, floor=QUOTE_FLOOR)
    if found is None:
        raise _RejectionError("quote_not_found")
    span = document.span(found.start, found.end)
    repair = None if found.method == "exact" else f"quote_{found.method}"
    return _Cited(span, document.quote(span), repair, None if repair is None else found.score)
