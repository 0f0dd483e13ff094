"""Scores of short answers as reading comprehension counts them: exact match and F1.

    >>> f1_squad("It was the Red Queen.", ["the red queen", "a queen"])
    0.6666666666666666

Source: Rajpurkar et al., SQuAD (EMNLP 2016), and its ``evaluate-v1.1.py``: lower-case, delete
punctuation, delete the words a, an and the, collapse spaces; words are not stemmed. Of several
gold answers the best counts. Punctuation joins: ``well-known`` is the one word ``wellknown``.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence

from mgl.evaluation.metrics.overlap import f1

__all__ = ["exact_match", "f1_squad", "squad_words"]

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_words(text: str) -> list[str]:
    """The words that SQuAD compares."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def exact_match(prediction: str, golds: Sequence[str]) -> float:
    """1 where the words of the prediction are those of one of the gold answers, in order; else 0.

    ValueError where there is no gold answer.
    """
    _check(golds)
    said = squad_words(prediction)
    return float(any(said == squad_words(gold) for gold in golds))


def f1_squad(prediction: str, golds: Sequence[str]) -> float:
    """F1 of the words as multisets, 0 to 1, with the gold answer that it is best for.

    Nothing against nothing has 0, as in the script. ValueError where there is no gold answer.
    """
    _check(golds)
    said = Counter(squad_words(prediction))
    best = 0.0
    for gold in golds:
        wanted = Counter(squad_words(gold))
        best = max(best, f1((said & wanted).total(), said.total(), wanted.total()))
    return best


def _check(golds: Sequence[str]) -> None:
    if not golds:
        raise ValueError("a score needs a gold answer")
