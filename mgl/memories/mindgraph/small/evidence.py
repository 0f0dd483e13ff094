"""The passage of a block that a claim stands on, found by code.

A run of neighbouring sentences that covers most of the claim's stems: a stem that the question
does not hold counts double, a stem that many sentences of the block share counts less, and of
equals the shortest and first wins. So a span is exact by construction, and whether it supports
the claim is asked of the model (``SUPPORTED``).
"""

from __future__ import annotations

from collections import Counter
from math import sqrt

from mgl.retrieval.bm25 import stems
from mgl.text import sentence_spans
from mgl.types import Chunk, Document, Span

__all__ = ["evidence_span"]

LIMIT = 300  # characters of a run of several sentences
LENGTH_COST = 0.002  # a character


def evidence_span(document: Document, block: Chunk, claim: str, question: str) -> Span:
    """The span of ``block`` that tells most of ``claim``; the block's first sentence where none
    shares a word with it."""
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
            if last > first and end - start > LIMIT:
                break
            covered |= bags[last]
            score = sum(weight for stem, weight in weights.items() if stem in covered)
            score -= LENGTH_COST * (end - start)
            if score > best_score:
                best, best_score = (start, end), score
    return document.span(*best)
