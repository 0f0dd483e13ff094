"""How good an answer, a set of retrieved turns or a segmentation is, exactly as others count it.

    >>> locomo_f1("She painted the lakes.", "painting a lake", category=4)
    0.8

| score | source |
|---|---|
| ``locomo_f1`` | LoCoMo's ``task_eval/evaluation.py``: stemmed words as a multiset, by category |
| ``amem_f1`` | A-Mem's and mem0's evaluation: plain words as a set |
| ``bleu1`` | the same two: NLTK's words, BLEU-1 with smoothing method 1 |
| ``evidence_recall`` | LoCoMo: share of the evidence turns among those returned |

The two F1 differ by several points on the same answers, so whoever reports one says which. Words
are cut and stemmed by NLTK, sentences by Punkt with NLTK's own model: the extra ``evaluation``.
None of these scores knows whether an answer is right.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean

from mgl.evaluation.metrics.nltktools import nltk_tools
from mgl.evaluation.metrics.overlap import f1

__all__ = [
    "amem_f1",
    "bleu1",
    "evidence_recall",
    "locomo_f1",
]

_ARTICLES = re.compile(r"\b(?:a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_TO_SPACES = str.maketrans(".,!?", "    ")
_UNANSWERED = ("no information available", "not mentioned")


def locomo_f1(prediction: str, gold: str | None, category: int) -> float:
    """LoCoMo's own score of an answer, 0 to 1.

    Category 1 (multi-hop) splits both at commas and takes, for each part of the gold answer, its
    best part of the prediction. Category 3 (open-domain) counts the gold answer up to its first
    semicolon. Category 5 (adversarial) is 1 where the prediction says that it is not mentioned.
    ValueError for other categories, and where 1 to 4 have no gold answer.
    """
    if category == 5:
        return float(any(phrase in prediction.lower() for phrase in _UNANSWERED))
    if category not in (1, 2, 3, 4):
        raise ValueError(f"LoCoMo has categories 1 to 5, not {category}")
    if gold is None:
        raise ValueError(f"a question of category {category} needs a gold answer")
    if category == 3:
        gold = gold.split(";")[0]
    if category != 1:
        return _stemmed_f1(prediction, gold)
    parts = prediction.split(",")
    return fmean(max(_stemmed_f1(part, wanted) for part in parts) for wanted in gold.split(","))


def amem_f1(prediction: str, gold: str) -> float:
    """F1 of the sets of words, lower-cased, with ``. , ! ?`` turned into spaces; 0 to 1."""
    said = set(prediction.lower().translate(_TO_SPACES).split())
    wanted = set(gold.lower().translate(_TO_SPACES).split())
    return f1(len(said & wanted), len(said), len(wanted))


def bleu1(prediction: str, gold: str) -> float:
    """BLEU-1 of the lower-cased words as NLTK cuts them, with smoothing method 1; 0 to 1."""
    return float(
        nltk_tools().bleu(
            [_words(gold)],
            _words(prediction),
            weights=(1, 0, 0, 0),
            smoothing_function=nltk_tools().method1,
        )
    )


def evidence_recall(returned: Sequence[str], evidence: Iterable[str], k: int) -> float:
    """Share of a question's evidence turns among the first ``k`` returned.

    ValueError where there is no evidence: such a question has no recall.
    """
    wanted = frozenset(evidence)
    if not wanted:
        raise ValueError("a question without evidence has no recall")
    return len(wanted.intersection(returned[:k])) / len(wanted)


def _stemmed_f1(prediction: str, gold: str) -> float:
    said, wanted = Counter(_stems(prediction)), Counter(_stems(gold))
    return f1((said & wanted).total(), said.total(), wanted.total())


def _stems(text: str) -> list[str]:
    plain = text.replace(",", "").lower().translate(_NO_PUNCTUATION)
    return [nltk_tools().stem(word) for word in _ARTICLES.sub(" ", plain).split()]


def _words(text: str) -> list[str]:
    """What ``nltk.word_tokenize`` gives, without the data that it would download."""
    tools = nltk_tools()
    return [word for sentence in tools.sentences(text.lower()) for word in tools.words(sentence)]
