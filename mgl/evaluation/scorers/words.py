"""Scores of words: SQuAD's, LoCoMo's and A-Mem's F1, exact match, and BLEU-1.

    >>> f1_squad("It was the Red Queen.", ["the red queen", "a queen"])
    0.6666666666666666
    >>> locomo_f1("She painted the lakes.", "painting a lake", category=4)
    0.8

| score | source |
|---|---|
| ``contains_squad`` | MemoryAgentBench's ``substring_exact_match``, also within a word |
| ``exact_match``, ``f1_squad`` | SQuAD's ``evaluate-v1.1.py`` (Rajpurkar et al., EMNLP 2016) |
| ``locomo_f1`` | LoCoMo's ``task_eval/evaluation.py``: stemmed words as a multiset, by category |
| ``amem_f1`` | A-Mem's and mem0's evaluation: plain words as a set |
| ``bleu1`` | the same two: NLTK's words, BLEU-1 with smoothing method 1 |

These F1 differ by several points on the same answers, so name the one you report. Punctuation joins
in SQuAD's words: ``well-known`` is one word, ``wellknown``. NLTK cuts and stems words, Punkt cuts
sentences with NLTK's own model (extra ``evaluation``); none of it needs data to be downloaded.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from functools import cache
from statistics import fmean
from types import SimpleNamespace
from typing import Any

from mgl.errors import UsageError, install_hint


def f1(common: int, said: int, wanted: int) -> float:
    """F1 of ``common`` words among ``said`` and ``wanted``, 0 to 1; 0 if none is common."""
    return 2 * common / (said + wanted) if common else 0.0


def multiset_f1(said: Counter[str], wanted: Counter[str]) -> float:
    return f1((said & wanted).total(), said.total(), wanted.total())


@cache
def nltk_tools() -> Any:
    """Load what scores take from NLTK; UsageError if the extra ``evaluation`` is not installed.

    NLTK stops its own expressions after five seconds by the clock, which short answers reach only
    on a busy machine; that limit is lifted.
    """
    try:
        import regex
        from nltk import redos
        from nltk.stem import PorterStemmer
        from nltk.tokenize import NLTKWordTokenizer
        from nltk.translate import bleu_score
        from nltk.translate.meteor_score import single_meteor_score
        from punkt import sent_tokenize
    except ImportError as error:
        raise UsageError(
            f"scoring answers needs {error.name}", hint=install_hint("evaluation")
        ) from error
    redos.DEFAULT_TIMEOUT = None
    return SimpleNamespace(
        stem=PorterStemmer().stem,
        locomo_articles=regex.compile(r"\b(?:a|an|the|and)\b"),  # no a in a letter with an accent
        words=NLTKWordTokenizer().tokenize,
        sentences=sent_tokenize,
        bleu=bleu_score.sentence_bleu,
        smoothing=bleu_score.SmoothingFunction().method1,
        precision=bleu_score.modified_precision,
        brevity=bleu_score.brevity_penalty,
        meteor=single_meteor_score,
    )


_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_words(text: str) -> list[str]:
    """Split a text into the words that SQuAD compares."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def exact_match(prediction: str, golds: Sequence[str]) -> float:
    """1 if the words are those of one of the gold answers, in order; else 0."""
    said = squad_words(prediction)
    return float(any(said == squad_words(gold) for gold in golds))


def contains_squad(prediction: str, golds: Sequence[str]) -> float:
    """1 if one of the gold answers stands in the prediction, both as SQuAD's words; else 0. One
    without words, such as "a", stands nowhere."""
    said = " ".join(squad_words(prediction))
    wanted = (" ".join(squad_words(gold)) for gold in golds)
    return float(any(words and words in said for words in wanted))


def f1_squad(prediction: str, golds: Sequence[str]) -> float:
    """F1 of the words as multisets, 0 to 1, best over the gold answers.

    Nothing against nothing is 0, as in the script.
    """
    said = Counter(squad_words(prediction))
    return max(multiset_f1(said, Counter(squad_words(gold))) for gold in golds)


_TO_SPACES = str.maketrans(".,!?", "    ")
_UNANSWERED = ("no information available", "not mentioned")


def locomo_f1(prediction: str, gold: str | None, category: int) -> float:
    """LoCoMo's own score of an answer, 0 to 1.

    Category 1 (multi-hop) splits both at commas and takes, for each part of the gold answer, its
    best part of the prediction. Category 3 (open-domain) counts the gold answer up to its first
    semicolon. Category 5 (adversarial) is 1 if the prediction says that it is not mentioned.
    ValueError for other categories, and if 1 to 4 have no gold answer.
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
            smoothing_function=nltk_tools().smoothing,
        )
    )


def _stemmed_f1(prediction: str, gold: str) -> float:
    return multiset_f1(Counter(_stems(prediction)), Counter(_stems(gold)))


def _stems(text: str) -> list[str]:
    plain = text.replace(",", "").lower().translate(_NO_PUNCTUATION)
    tools = nltk_tools()
    return [tools.stem(word) for word in tools.locomo_articles.sub(" ", plain).split()]


def _words(text: str) -> list[str]:
    """Tokenize as ``nltk.word_tokenize`` does, without the data that it would download."""
    tools = nltk_tools()
    return [word for sentence in tools.sentences(text.lower()) for word in tools.words(sentence)]
