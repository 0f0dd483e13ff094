"""The build stage of the small preset: the same graph and log, less asked of one call.

For each question the blocks are ranked (``ranking``); from the best few the model says in one
sentence what the block tells, and in a second call whether the block really says so. Code does the
rest: the span a claim stands on, the names in it, and the edges. A claim that its block does not
support is logged as rejected, unless it is the best there is. One graph serves all questions of a
document.

    claim —mentions→ entity    the claim's passage holds one of the entity's names
    claim —then→ claim         the next claim of the same question, in reading order
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mgl.llm.base import LLM
from mgl.llm.prompting import SYSTEM
from mgl.memories.base import Tools
from mgl.memories.calls import (
    CLAIM,
    CLAIM_WITHOUT_QUESTION,
    OPEN_QUESTION,
    SUPPORTED,
    extract_claim,
)
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.edits import record, resolved
from mgl.memories.mindgraph.small.evidence import evidence_span
from mgl.memories.mindgraph.small.parts import all_parts
from mgl.memories.mindgraph.small.prompts import RELEVANT
from mgl.memories.mindgraph.small.ranking import rank_blocks
from mgl.memories.mindgraph.state import AddEdge, AddNode, Graph, apply, replay
from mgl.prompt import Prompt
from mgl.store import EditRecord
from mgl.text import sentence_spans
from mgl.text.names import Name, find_names, mentioned
from mgl.types import Chunk, Document, Question, Span

__all__ = ["build_small", "claim_id", "claim_prefix", "small_writing_prompts"]


@dataclass(frozen=True, slots=True)
class _Claim:
    """What a block tells for a question; ``support`` is the model's P(Yes) that it says so, and
    ``kept`` that this is enough, or the most there is for the question."""

    question: int
    block: int
    text: str
    support: float
    span: Span
    call_key: str | None
    kept: bool = True


def claim_prefix(question: int) -> str:
    """How the ids of the claims made for the n-th part begin."""
    return f"q{question + 1}_block"


def claim_id(question: int, block: int) -> str:
    """The node id of the claim that a block makes for the n-th part of the questions; both count
    from 0."""
    return f"{claim_prefix(question)}{block + 1}"


def small_writing_prompts(questions: Sequence[Question]) -> tuple[Prompt, ...]:
    """The prompts that decide what stands in a graph for these questions."""
    claiming = (RELEVANT, CLAIM) if questions else (CLAIM_WITHOUT_QUESTION,)
    return (SYSTEM, *claiming, SUPPORTED)


async def build_small(
    tools: Tools,
    memory_id: str,
    document: Document,
    blocks: Sequence[Chunk],
    questions: Sequence[Question],
    config: MindGraphConfig,
) -> None:
    """Read the document for its questions; the edits of one block are one transaction.

    Without questions every block makes one claim, and no block is ranked.
    """
    done = tools.store.chunks_done(memory_id)
    parts = all_parts(question.text for question in questions)
    if parts:
        orders = await rank_blocks(tools, blocks, parts, pool=config.pool)
        wanted = [
            (number, block)
            for number, order in enumerate(orders)
            for block in order[: config.claims_per_question]
        ]
    else:
        wanted = [(0, block.index) for block in blocks]
    claims = await _claims(tools, document, blocks, parts, wanted, config.support_floor)
    edits = (resolved(row) for row in tools.store.edits(memory_id))
    writer = _Writer(
        document, find_names(document.text), replay(edit for edit in edits if edit is not None)
    )
    for block in blocks:
        if block.index not in done:
            here = [claim for claim in claims if claim.block == block.index]
            rows = writer.write(block, here)
            tools.store.append_edits(memory_id, block.index, rows)


async def _claims(
    tools: Tools,
    document: Document,
    blocks: Sequence[Chunk],
    questions: Sequence[Question],
    wanted: Sequence[tuple[int, int]],
    support_floor: float,
) -> list[_Claim]:
    made = 0

    async def read(number: int, index: int) -> _Claim | None:
        nonlocal made
        question = questions[number] if questions else None
        claim = await _claim(tools.llm, document, blocks[index], question, number)
        made += 1
        tools.observer.progress("read", made, len(wanted))
        return claim

    tools.observer.progress("read", 0, len(wanted))
    claims = await asyncio.gather(*(read(number, index) for number, index in wanted))
    return _judged([claim for claim in claims if claim is not None], support_floor)


def _judged(claims: Sequence[_Claim], support_floor: float) -> list[_Claim]:
    best: dict[int, float] = {}
    for claim in claims:
        best[claim.question] = max(claim.support, best.get(claim.question, 0.0))
    return [
        replace(claim, kept=claim.support >= min(support_floor, best[claim.question]))
        for claim in claims
    ]


async def _claim(
    llm: LLM, document: Document, block: Chunk, question: Question | None, number: int
) -> _Claim | None:
    asked = None if question is None else question.text
    claim = await extract_claim(llm, block.text, asked)
    if claim is None:
        return None
    span = evidence_span(document, block, claim.text, asked or OPEN_QUESTION)
    return _Claim(number, block.index, claim.text, claim.support, span, claim.call_key)


class _Writer:
    """Turns claims into edits of a graph that grows with them, block by block."""

    def __init__(self, document: Document, names: Sequence[Name], graph: Graph) -> None:
        self._document = document
        self._names = names
        self._ids = _entity_ids(names)
        self._graph = graph

    def write(self, block: Chunk, claims: Sequence[_Claim]) -> list[EditRecord]:
        rows: list[EditRecord] = []
        for claim in claims:
            node = AddNode(
                claim_id(claim.question, claim.block),
                "claim",
                claim.text,
                claim.span,
                self._document.quote(claim.span),
                block.index,
            )
            if not claim.kept:
                rows.append(_rejected(node, "not_supported", claim))
                continue
            rows.append(replace(self._add(node, claim), score=claim.support))
            for name in mentioned(node.quote, self._names):
                entity = self._entity(name, node, rows, claim)
                rows.append(self._link(node.id, entity, "mentions", node, claim))
            before = self._claim_before(claim)
            if before is not None:
                rows.append(self._link(before, node.id, "then", node, claim))
        return rows

    def _entity(
        self, name: Name, claim_node: AddNode, rows: list[EditRecord], claim: _Claim
    ) -> str:
        """The id of the name's node, added where it is first needed: its span is the sentence
        of the claim's passage that names it."""
        identity = self._ids[name.name]
        if self._graph.node(identity) is None:
            span = self._naming_sentence(claim_node.span, name)
            others = [alias for alias in name.aliases if alias != name.name]
            content = f"{name.name} (also {', '.join(others)})" if others else name.name
            quote = self._document.quote(span)
            entity = AddNode(identity, "entity", content, span, quote, claim_node.chunk)
            rows.append(self._add(entity, claim))
        return identity

    def _naming_sentence(self, passage: Span, name: Name) -> Span:
        for start, end in sentence_spans(self._document.text, passage.start, passage.end):
            if mentioned(self._document.text[start:end], [name]):
                return self._document.span(start, end)
        return passage

    def _claim_before(self, claim: _Claim) -> str | None:
        prefix = claim_prefix(claim.question)
        earlier = [node.id for node in self._graph.nodes if node.id.startswith(prefix)]
        return earlier[-2] if len(earlier) > 1 else None

    def _link(
        self, source: str, target: str, relation: str, node: AddNode, claim: _Claim
    ) -> EditRecord:
        return self._add(
            AddEdge(source, target, relation, node.span, node.quote, node.chunk), claim
        )

    def _add(self, edit: AddNode | AddEdge, claim: _Claim) -> EditRecord:
        self._graph = apply(self._graph, edit)
        return record(edit, call_key=claim.call_key)


def _rejected(node: AddNode, reason: str, claim: _Claim) -> EditRecord:
    row = record(node, call_key=claim.call_key)
    return replace(row, outcome="rejected", reason=reason, score=claim.support)


def _entity_ids(names: Sequence[Name]) -> dict[str, str]:
    """A readable id for each name; a number where two names would share one."""
    ids: dict[str, str] = {}
    for number, name in enumerate(names):
        plain = unicodedata.normalize("NFKD", name.name).encode("ascii", "ignore").decode()
        slug = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")[:32]
        taken = not slug or slug in ids.values()
        ids[name.name] = f"{slug or 'name'}_{number}" if taken else slug
    return ids
