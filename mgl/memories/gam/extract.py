"""A topic's summary and keywords without a model: its most telling words and utterances.

Ours, for ``summaries: extract``. A keyword is frequent in the topic and rare among all turns so far
(which counts twice). An utterance stands for the topic where it holds what is much spoken of in it,
everyday words too, and is not long: so topics on like matters are alike.
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
    keywords = _weights(_words(lines, "english_plus"), _words(all_lines, "english_plus"), 2)
    best_words = sorted(keywords, key=lambda word: (-keywords[word], word))[:KEYWORDS]
    bags = _words(lines, "en")
    weights = _weights(bags, _words(all_lines, "en"), 1)
    telling = [sum(weights[word] for word in set(bag)) / sqrt(1 + len(bag)) for bag in bags]
    best = sorted(range(len(lines)), key=lambda place: -telling[place])[:UTTERANCES]
    summary = " ".join(_shortened(lines[place]) for place in sorted(best))
    return summary, tuple(best_words)


def _weights(
    bags: Sequence[Sequence[str]], all_bags: Sequence[Sequence[str]], rarity: int
) -> dict[str, float]:
    """How telling each word is: its count, times the log of its rarity to a power."""
    spread = Counter(chain.from_iterable(map(set, all_bags)))
    return {
        word: count * log(1 + len(all_bags) / max(1, spread[word])) ** rarity
        for word, count in Counter(chain.from_iterable(bags)).items()
    }


def _shortened(line: str) -> str:
    return " ".join(line.split())[:UTTERANCE_CHARACTERS].rstrip()


def _words(lines: Sequence[str], stopwords: str) -> list[list[str]]:
    import bm25s

    words: list[list[str]] = bm25s.tokenize(
        list(lines), stopwords=stopwords, stemmer=None, return_ids=False, show_progress=False
    )
    return words
