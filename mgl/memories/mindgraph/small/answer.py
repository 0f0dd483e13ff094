"""The answer stage of the small preset: choose claims by code, read their passages again, answer.

The claims made for the question are ordered by how well their block supports them; the passages
of the best are looked up in the original (what lookup_source gives), put in reading order, and the
model answers from them in one call. What it cites are the claims whose passages it read. A
question that the graph was not built for takes the claims that BM25 finds for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel

from mgl.llm.base import Reply, Sampling
from mgl.memories.base import Tools
from mgl.memories.mindgraph.answer import citations
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.small.build import claim_prefix
from mgl.memories.mindgraph.small.parts import all_parts, split_question
from mgl.memories.mindgraph.small.prompts import ANSWER, ANSWER_PARTS, SUPPORTED
from mgl.memories.mindgraph.small.ranking import flat, user
from mgl.memories.mindgraph.state import Graph, Node
from mgl.memories.mindgraph.tools import passage_around
from mgl.retrieval import Bm25
from mgl.types import Answer, Confidence, Document, Question, Span

__all__ = ["answer_small", "merge_spans", "rank_claims"]

ANSWER_TOKENS = 120
HIGH, MEDIUM = 0.85, 0.6
_UNNUMBERED = re.compile(r"^\s*\d+\.\s+", re.MULTILINE)


async def answer_small(
    tools: Tools,
    document: Document,
    graph: Graph,
    support: Mapping[str, float],
    built_for: Sequence[str],
    question: Question,
    config: MindGraphConfig,
    *,
    source_tokens: int,
) -> Answer:
    """Answer from the passages of the best claims; ``support`` is P(Yes) by claim id."""
    parts = split_question(question.text)
    each = config.claims_read if len(parts) == 1 else 1
    ranked = [rank_claims(graph, support, built_for, part)[:each] for part in parts]
    chosen = [node for nodes in ranked for node in nodes]
    spans = merge_spans(
        [passage_around(document, node.span, config.lookup_chars) for node in chosen]
    )
    passages = [flat(document.quote(span)) for span in spans]
    reply: Reply[BaseModel] = await tools.llm.complete(
        user(_prompt(passages, parts)), sampling=Sampling(max_tokens=ANSWER_TOKENS), stage="answer"
    )
    text = flat(_UNNUMBERED.sub("", reply.text) if len(parts) > 1 else reply.text)
    check = SUPPORTED.render(block="\n\n".join(passages), question=question.text, claim=text)
    believed = await tools.llm.probability_of_yes(user(check), stage="check")
    return Answer(
        question=question.text,
        text=text,
        confidence=_confidence(believed),
        citations=citations(document, graph, [node.id for node in chosen]),
        trace=tuple(f"lookup_source(node_id={node.id!r})" for node in chosen),
        compaction_ratio=reply.usage.input_tokens / source_tokens,
    )


def rank_claims(
    graph: Graph, support: Mapping[str, float], built_for: Sequence[str], part: str
) -> list[Node]:
    """The claims to read for one part of a question, the best first: those made for it by their
    support, or, where the graph was not built for it, all by BM25."""
    claims = [node for node in graph.nodes if node.type == "claim"]
    known = [question.text for question in all_parts(built_for)]
    if part in known:
        prefix = claim_prefix(known.index(part))
        own = [node for node in claims if node.id.startswith(prefix)]
        return sorted(own, key=lambda node: -support[node.id])
    scores = Bm25([f"{node.content} {node.quote}" for node in claims]).scores(part)
    return [claims[place] for place in sorted(range(len(claims)), key=lambda at: -scores[at])]


def _prompt(passages: Sequence[str], parts: Sequence[str]) -> str:
    body = "\n\n".join(f"[{number}] {text}" for number, text in enumerate(passages, 1))
    if len(parts) == 1:
        return ANSWER.render(passages=body, question=parts[0])
    questions = "\n".join(f"{number}. {part}" for number, part in enumerate(parts, 1))
    return ANSWER_PARTS.render(passages=body, questions=questions)


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Overlapping or touching spans made one, in reading order."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(span.document_id, merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def _confidence(believed: float) -> Confidence:
    if believed >= HIGH:
        return "high"
    return "medium" if believed >= MEDIUM else "low"
