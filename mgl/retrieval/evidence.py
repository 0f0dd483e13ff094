"""Where a text says what is claimed of it: sentences found by their words, without a model."""

from __future__ import annotations

from collections import Counter
from math import fsum, sqrt
from typing import Final

from mgl.retrieval.lexical import all_stems, stems
from mgl.text import sentence_spans
from mgl.types import Document, Span

RUN_CHARS: Final = 300
"""The characters of a run of several sentences, at most."""
LENGTH_COST: Final = 0.002
"""What a character of the run takes from its score."""


def find_evidence(
    document: Document, within: Span, claim: str, question: str
) -> tuple[Span, float]:
    """Find the sentences of a part of a document that tell most of ``claim``, and how much: 0, and
    the first sentence, where none shares a word with it.

    A run of neighbouring sentences that covers most of the claim's stems: a stem that the question
    does not hold counts double, a stem that many sentences of the part share counts less, and of
    equals the shortest and first wins. So a span is exact by construction, and whether it supports
    the claim is asked of the model.
    """
    sentences = sentence_spans(document.text, within.start, within.end)
    if not sentences:
        return within, 0.0
    bags = [set(each) for each in all_stems([document.text[start:end] for start, end in sentences])]
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
            score = fsum(weight for stem, weight in weights.items() if stem in covered)
            score -= LENGTH_COST * (end - start)
            if score > best_score:
                best, best_score = (start, end), score
    return document.span(*best), best_score
