"""The small preset: the same graph and log, with less asked of one call.

Building: for each question the blocks are ranked; from the best few the model says in one sentence
what the block tells, and in a second call whether the block really says so. Code does the rest: the
span that a claim stands on, the names in it, and the edges. A claim that its block does not support
is logged as rejected, unless it is the best there is. One graph serves all questions of a document.

    claim —mentions→ entity    the claim's passage holds one of the entity's names
    claim —then→ claim         the next claim of the same question, in reading order

Answering: of the claims made for a question the one that its block supports best is looked up in
the original, and the model answers from that passage in one call; it cites that claim. A question
that the graph was not built for takes the claim that BM25 finds for it. More passages, several
claims as notes, or a quote before the answer all made a 1.5B model answer worse. Edges are not
used: following them chose no better passages than shuffled ones. What the model thinks of its
answer is not calibrated, so confidence is never high.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import sqrt

import numpy as np

from mgl.llm.prompting import SYSTEM, reader_messages
from mgl.memories.base import Tools
from mgl.memories.calls import (
    CLAIM,
    CLAIM_WITHOUT_QUESTION,
    OPEN_QUESTION,
    SUPPORTED,
    Claim,
    answer_from_passages,
    extract_claim,
)
from mgl.memories.log import Draft
from mgl.memories.mindgraph.prompts import RELEVANT
from mgl.memories.mindgraph.state import AddEdge, AddNode, Edit, Graph, Node
from mgl.memories.mindgraph.tools import cite_nodes, passage_around
from mgl.prompt import Prompt, one_line
from mgl.retrieval import LexicalIndex, reciprocal_rank_fusion
from mgl.retrieval.lexical import stems
from mgl.store import MemoryRecord
from mgl.text import sentence_spans
from mgl.text.groups import show_span
from mgl.text.names import Name, find_mentioned, find_names
from mgl.types import Answer, Chunk, Document, Question, Span

__all__ = [
    "ClaimWriter",
    "answer_from_claims",
    "extract_claims",
    "find_evidence",
    "small_writing_prompts",
    "split_question",
    "split_questions",
]

POOL = 48  # blocks that the model ranks
CLAIMS_PER_QUESTION = 5  # blocks read closely
SUPPORT_FLOOR = 0.75  # P(Yes) below which a claim is rejected
PASSAGE_CHARS = 1500  # read again for an answer
RRF_K = 20
MODEL_WEIGHT = 2  # the model's order of the blocks counts twice, BM25's once
RUN_CHARS = 300  # of a run of several sentences
LENGTH_COST = 0.002  # a character
CONFIRMED = 0.8
NOT_FOUND = "The graph holds nothing about this."

_AND = re.compile(
    r",?\s+and\s+(?=(?:who|whom|whose|what|where|when|why|how|which)\b)", re.IGNORECASE
)


def small_writing_prompts(questions: Sequence[Question]) -> tuple[Prompt, ...]:
    """The prompts that decide what stands in a graph for these questions."""
    claiming = (RELEVANT, CLAIM) if questions else (CLAIM_WITHOUT_QUESTION,)
    return (SYSTEM, *claiming, SUPPORTED)


# Questions


def split_question(text: str) -> list[str]:
    """The questions that a question is made of: itself, where it asks one thing.

    Only "and" before a question word parts it: a comma alone may begin a relative clause. Pronouns
    are not resolved.

        >>> split_question("Whom does Ann marry, and where is the ring?")
        ['Whom does Ann marry?', 'Where is the ring?']
    """
    parts = [part.strip() for part in _AND.split(text.strip().rstrip("?").rstrip()) if part.strip()]
    if len(parts) < 2:
        return [text.strip()]
    return [f"{part[0].upper()}{part[1:]}?" for part in parts]


def split_questions(questions: Iterable[str]) -> list[str]:
    """The parts of all questions in order, each once: what a graph is read for."""
    return list(dict.fromkeys(part for text in questions for part in split_question(text)))


# Claims


@dataclass(frozen=True, slots=True)
class FoundClaim:
    """What a block tells for a part of the questions, and the span that says so.

    ``is_kept``: its support is enough, or the most that any claim for that part has.
    """

    question: int
    block: int
    claim: Claim
    span: Span
    is_kept: bool = True


async def extract_claims(
    tools: Tools,
    document: Document,
    blocks: Sequence[Chunk],
    questions: Sequence[str],
) -> list[FoundClaim]:
    """What the best blocks for each question tell; without questions, what every block tells."""
    wanted = [(0, block.index) for block in blocks]
    if questions:
        orders = await _rank_blocks(tools, blocks, questions)
        wanted = [
            (number, index)
            for number, order in enumerate(orders)
            for index in order[:CLAIMS_PER_QUESTION]
        ]
    advance = _start_progress(tools, "read", len(wanted))

    async def read(number: int, index: int) -> FoundClaim | None:
        question = questions[number] if questions else None
        text = show_span(document, blocks[index].span)
        claim = await extract_claim(tools.llm, text, question)
        advance()
        if claim is None:
            return None
        span = find_evidence(document, blocks[index], claim.text, question or OPEN_QUESTION)
        return FoundClaim(number, index, claim, span)

    read_all = await asyncio.gather(*(read(number, index) for number, index in wanted))
    found = [each for each in read_all if each is not None]
    best: dict[int, float] = {}
    for each in found:
        best[each.question] = max(best.get(each.question, 0.0), each.claim.support)
    return [
        replace(each, is_kept=each.claim.support >= min(SUPPORT_FLOOR, best[each.question]))
        for each in found
    ]


async def _rank_blocks(
    tools: Tools, blocks: Sequence[Chunk], questions: Sequence[str]
) -> list[list[int]]:
    """For each question the numbers of its pool's blocks, the best first.

    Two orders are fused: BM25 over all blocks and, over the best ``POOL`` of them, the model's own
    P(Yes) that a block helps. A small model's P(Yes) has no usable threshold (it says Yes nearly
    everywhere), but its order finds blocks that hardly share a word with the question.

    All blocks of a question are asked about before the next question: a block is then in the
    engine's prefix cache when the next question asks of it.
    """
    index, size = LexicalIndex.of([block.text for block in blocks]), min(POOL, len(blocks))
    advance = _start_progress(tools, "rank", size * len(questions))

    async def judge(block: Chunk, question: str) -> float:
        prompt = RELEVANT.render(block=one_line(block.text), question=question)
        probability = await tools.llm.probability_of_yes(reader_messages(prompt), stage="rank")
        advance()
        return probability

    orders: list[list[int]] = []
    for question in questions:
        scores = index.scores(question)
        places = sorted(np.argsort(-scores, kind="stable")[:size].tolist())
        judged = await asyncio.gather(*(judge(blocks[place], question) for place in places))
        fused = reciprocal_rank_fusion([scores[places], *[judged] * MODEL_WEIGHT], k=RRF_K)
        orders.append([places[at] for at in np.argsort(-fused, kind="stable").tolist()])
    return orders


def _start_progress(tools: Tools, phase: str, total: int) -> Callable[[], None]:
    """Report the start of a phase; returns a function that reports one more call."""
    done = count(1)
    tools.observer.progress(phase, 0, total)
    return lambda: tools.observer.progress(phase, next(done), total)


def find_evidence(document: Document, block: Chunk, claim: str, question: str) -> Span:
    """The span of ``block`` that tells most of ``claim``; the block's first sentence where none
    shares a word with it.

    A run of neighbouring sentences that covers most of the claim's stems: a stem that the question
    does not hold counts double, a stem that many sentences of the block share counts less, and of
    equals the shortest and first wins. So a span is exact by construction, and whether it supports
    the claim is asked of the model.
    """
    sentences = sentence_spans(document.text, block.span.start, block.span.end)
    if not sentences:
        return block.span
    bags = [set(stems(document.text[start:end])) for start, end in sentences]
    shared = Counter(stem for bag in bags for stem in bag)
    asked = set(stems(question))
    weights = {
        stem: (1.0 if stem in asked else 2.0) / sqrt(shared[stem])
        for stem in set(stems(claim))
        if shared[stem]
    }
    best, best_score = sentences[0], 0.0
    for first, (start, _) in enumerate(sentences):
        covered: set[str] = set()
        for last in range(first, len(sentences)):
            end = sentences[last][1]
            if last > first and end - start > RUN_CHARS:
                break
            covered |= bags[last]
            score = sum(weight for stem, weight in weights.items() if stem in covered)
            score -= LENGTH_COST * (end - start)
            if score > best_score:
                best, best_score = (start, end), score
    return document.span(*best)


# The graph


def _claim_prefix(question: int) -> str:
    """The prefix of the ids of the claims made for the n-th part, counted from 0."""
    return f"q{question + 1}_block"


class ClaimWriter:
    """Turns claims into edits of a graph, with the names of the whole document as its entities."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names = find_names(document.text)
        self._ids = _entity_ids(self._names)

    def write(self, draft: Draft[Edit, Graph], found: FoundClaim) -> None:
        """Put a claim into the draft of its block, with the names in it and its edges."""
        claim, key, prefix = found.claim, found.claim.call_key, _claim_prefix(found.question)
        quote, identity = self._document.quote(found.span), f"{prefix}{found.block + 1}"
        node = AddNode(identity, "claim", claim.text, found.span, quote, found.block)
        rejected = None if found.is_kept else "not_supported"
        if not draft.put(node, rejected=rejected, score=claim.support, call_key=key):
            return
        for name in find_mentioned(quote, self._names):
            entity = self._ids[name.name]
            if draft.state.node(entity) is None:
                draft.put(self._make_entity(name, found), call_key=key)
            link = AddEdge(identity, entity, "mentions", found.span, quote, found.block)
            draft.put(link, call_key=key)
        earlier = [node.id for node in draft.state.nodes if node.id.startswith(prefix)]
        if len(earlier) > 1:
            link = AddEdge(earlier[-2], identity, "then", found.span, quote, found.block)
            draft.put(link, call_key=key)

    def _make_entity(self, name: Name, found: FoundClaim) -> AddNode:
        """A name's node, whose source is the sentence of the claim's passage that names it."""
        text, span = self._document.text, found.span
        for start, end in sentence_spans(text, span.start, span.end):
            if find_mentioned(text[start:end], [name]):
                span = self._document.span(start, end)
                break
        others = [alias for alias in name.aliases if alias != name.name]
        content = f"{name.name} (also {', '.join(others)})" if others else name.name
        quote = self._document.quote(span)
        return AddNode(self._ids[name.name], "entity", content, span, quote, found.block)


def _entity_ids(names: Sequence[Name]) -> dict[str, str]:
    """A readable id for each name; a number where two names would share one."""
    ids: dict[str, str] = {}
    for number, name in enumerate(names):
        plain = unicodedata.normalize("NFKD", name.name).encode("ascii", "ignore").decode()
        slug = re.sub(r"[^a-z0-9]+", "_", plain.lower()).strip("_")[:32]
        taken = not slug or slug in ids.values()
        ids[name.name] = f"{slug or 'name'}_{number}" if taken else slug
    return ids


# The answer


async def answer_from_claims(
    tools: Tools,
    document: Document,
    graph: Graph,
    support: Mapping[str, float],
    question: Question,
    *,
    record: MemoryRecord,
) -> Answer:
    """Answer each part of a question from the best claim's passage, or the whole with one of its
    options from all these passages; ``support`` is P(Yes) by claim id, ``record`` the memory's."""
    read: list[tuple[Node, Span, str]] = []
    for part in split_question(question.text):
        for node in _rank_claims(graph, support, record.questions, part)[:1]:
            read.append((node, passage_around(document, node.span, PASSAGE_CHARS), part))
    shown = [show_span(document, span) for _, span, _ in read]
    if question.options:
        replies = [await answer_from_passages(tools.llm, shown, question)]
    else:
        replies = [
            await answer_from_passages(tools.llm, [text], Question(part))
            for text, (_, _, part) in zip(shown, read, strict=True)
        ]
    confirmed = bool(read) and all(support[node.id] >= CONFIRMED for node, _, _ in read)
    return Answer(
        question=question.text,
        text=" ".join(reply.text for reply in replies) or NOT_FOUND,
        confidence="medium" if confirmed else "low",
        citations=cite_nodes(document, list(dict.fromkeys(node for node, _, _ in read))),
        trace=tuple(f"lookup_source(node_id={node.id!r})" for node, _, _ in read),
        compaction_ratio=sum(reply.input_tokens for reply in replies) / record.tokens,
        retrieved=tuple(dict.fromkeys(span.place for _, span, _ in read)),
    )


def _rank_claims(
    graph: Graph, support: Mapping[str, float], built_for: Sequence[str], part: str
) -> list[Node]:
    """The claims to read for one part of a question, the best first: those made for it by their
    support, or, where the graph was not built for it, those that BM25 finds."""
    claims = [node for node in graph.nodes if node.type == "claim"]
    known = split_questions(built_for)
    if part in known:
        prefix = _claim_prefix(known.index(part))
        own = [node for node in claims if node.id.startswith(prefix)]
        return sorted(own, key=lambda node: -support[node.id])
    scores = LexicalIndex.of([f"{node.content} {node.quote}" for node in claims]).scores(part)
    found = [place for place in range(len(claims)) if scores[place] > 0]
    return [claims[place] for place in sorted(found, key=lambda at: -scores[at])]
