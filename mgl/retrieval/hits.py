"""Every place of a text that speaks of what a question asks about, found by words, without a model.

For questions whose answer is spread over the whole text ("How many letters …", "List all …"), which
the few best blocks do not hold. Words are English ones (``mgl.text.support``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log
from typing import Final

from mgl.text import sentence_spans
from mgl.text.support import find_telling
from mgl.types import Document, Span

NEAR: Final = 0.5
"""A sentence is a hit from this share of the best one's score; ours."""


def find_hits(document: Document, question: str, chars: int) -> list[Span]:
    """Find the sentences of a whole text that share a question's words, with those around them, in
    the order of the text and of at most ``chars`` together.

    A word counts more the fewer sentences have it. Where the hits do not fit, the best are taken.
    """
    sentences = sentence_spans(document.text, 0, len(document.text))
    bags = [find_telling(document.text[start:end]) for start, end in sentences]
    held = Counter(stem for bag in bags for stem in bag)
    asked = find_telling(question) & held.keys()
    weights = {stem: log((1 + len(sentences)) / held[stem]) for stem in asked}
    scores = [sum(weights[stem] for stem in bag & asked) for bag in bags]
    floor = NEAR * max(scores, default=0.0)
    hits = [place for place, score in enumerate(scores) if score > 0 and score >= floor]
    hits.sort(key=lambda place: -scores[place])
    around = [near for place in hits for near in (place - 1, place + 1)]
    taken, room = set[int](), chars
    for place in (*hits, *around):  # the hits first, then what stands beside them
        if 0 <= place < len(sentences) and place not in taken:
            size = sentences[place][1] - sentences[place][0]
            if size <= room:
                taken.add(place)
                room -= size
    return _join(document, sentences, sorted(taken))


def _join(
    document: Document, sentences: Sequence[tuple[int, int]], places: Sequence[int]
) -> list[Span]:
    """One span for each run of neighbouring sentences."""
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][-1] == place - 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    return [document.span(sentences[run[0]][0], sentences[run[-1]][1]) for run in runs]
