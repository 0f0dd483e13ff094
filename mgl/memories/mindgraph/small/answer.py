"""The answer stage of the small preset: the passage that is confirmed most is read again.

Of the claims made for a question the one that its block supports best is looked up in the
original, and the model answers from that passage in one call; it cites that claim. A question of
several parts is answered part by part. A question that the graph was not built for takes the
claim that BM25 finds for it.

More passages, several claims as notes, or a quote before the answer all made a 1.5B model answer
worse. Edges are not used: following them chose no better passages than shuffled ones. What the
model thinks of its answer is not calibrated, so confidence is never high.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mgl.memories.base import Tools
from mgl.memories.calls import PassageAnswer, answer_from_passages
from mgl.memories.mindgraph.answer import citations
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.small.build import claim_prefix
from mgl.memories.mindgraph.small.parts import all_parts, split_question
from mgl.memories.mindgraph.state import Graph, Node
from mgl.memories.mindgraph.tools import passage_around
from mgl.retrieval import Bm25
from mgl.types import Answer, Document, Question, Span

__all__ = ["answer_small", "rank_claims"]

CONFIRMED = 0.8
NOT_FOUND = "The graph holds nothing about this."


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
    """Answer from the best claim's passage; ``support`` is P(Yes) by claim id."""
    read: list[tuple[Node, PassageAnswer]] = []
    passages: list[Span] = []
    for part in split_question(question.text):
        for node in rank_claims(graph, support, built_for, part)[:1]:
            span = passage_around(document, node.span, config.passage_chars)
            passages.append(span)
            reply = await answer_from_passages(tools.llm, [document.quote(span)], part)
            read.append((node, reply))
    confirmed = bool(read) and all(support[node.id] >= CONFIRMED for node, _ in read)
    return Answer(
        question=question.text,
        text=" ".join(reply.text for _, reply in read) or NOT_FOUND,
        confidence="medium" if confirmed else "low",
        citations=citations(document, graph, [node.id for node, _ in read]),
        trace=tuple(f"lookup_source(node_id={node.id!r})" for node, _ in read),
        compaction_ratio=sum(reply.input_tokens for _, reply in read) / source_tokens,
        retrieved=tuple(dict.fromkeys(span.place for span in passages)),
    )


def rank_claims(
    graph: Graph, support: Mapping[str, float], built_for: Sequence[str], part: str
) -> list[Node]:
    """The claims to read for one part of a question, the best first: those made for it by their
    support, or, where the graph was not built for it, those that BM25 finds."""
    claims = [node for node in graph.nodes if node.type == "claim"]
    known = [question.text for question in all_parts(built_for)]
    if part in known:
        prefix = claim_prefix(known.index(part))
        own = [node for node in claims if node.id.startswith(prefix)]
        return sorted(own, key=lambda node: -support[node.id])
    scores = Bm25([f"{node.content} {node.quote}" for node in claims]).scores(part)
    found = [place for place in range(len(claims)) if scores[place] > 0]
    return [claims[place] for place in sorted(found, key=lambda at: -scores[at])]
