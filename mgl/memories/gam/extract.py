"""A topic's summary and keywords without a model: its most telling words and utterances.

Ours, for ``summaries: extract``. A word tells much where it is frequent in the topic and rare
among all turns so far, which counts twice; an utterance where it holds such words and is not long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from math import log, sqrt

__all__ = ["extracted"]

KEYWORDS, UTTERANCES = 8, 2
UTTERANCE_CHARACTERS = 400


def extracted(lines: Sequence[str], all_lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Summary and keywords of some lines among ``all_lines``."""
    bags = _words(lines)
    spread = Counter(chain.from_iterable(map(set, _words(all_lines))))
    counts = Counter(chain.from_iterable(bags))
    weights = {
        word: count * log(1 + len(all_lines) / max(1, spread[word])) ** 2
        for word, count in counts.items()
    }
    keywords = sorted(weights, key=lambda word: (-weights[word], word))[:KEYWORDS]
    telling = [sum(weights[word] for word in set(bag)) / sqrt(1 + len(bag)) for bag in bags]
    best = sorted(range(len(lines)), key=lambda place: -telling[place])[:UTTERANCES]
    summary = " ".join(_shortened(lines[place]) for place in sorted(best))
    return summary, tuple(keywords)


def _shortened(line: str) -> str:
    return " ".join(line.split())[:UTTERANCE_CHARACTERS].rstrip()


def _words(lines: Sequence[str]) -> list[list[str]]:
    import bm25s

    words: list[list[str]] = bm25s.tokenize(
        list(lines), stopwords="english_plus", stemmer=None, return_ids=False, show_progress=False
    )
    return words
