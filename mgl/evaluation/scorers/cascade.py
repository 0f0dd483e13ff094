"""MindGraph's deterministic cascade: checks that decide an answer before a judge is asked.

Source: MindGraph D.4: exact match, normalised number, containment, first-sentence containment,
key-phrase token-F1 ≥ 0.5. The paper names the steps but prints no rules; these are ours:

1. exact: the same words after lower-casing and dropping punctuation and articles
2. number: the gold answer is one number, and it is among the numbers of the prediction
3. containment: the gold answer's words stand in the prediction, together and in order
4. first sentence: the same for the gold answer's first sentence
5. key phrase: multiset F1 of the words that are no stop words is at least 0.5

    >>> cascade("He went to Rome.", ["Rome"])
    'containment'
    >>> cascade("He stayed at home.", ["Rome"]) is None
    True
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import isfinite
from typing import Literal

from mgl.evaluation.scorers.words import contains_words, multiset_f1
from mgl.text import sentence_spans

__all__ = ["Step", "cascade"]

Step = Literal["exact", "number", "containment", "first_sentence", "key_phrase"]
F1_FLOOR = 0.5
_WORD = re.compile(r"[^\W_]+(?:[.,](?=\d)[^\W_]+)*")
_ARTICLES = frozenset(("a", "an", "the"))
_STOP = _ARTICLES | frozenset(
    "and or but of to in on at by for with from as is are was were be been being it its he she "
    "his her him they them their that this these those who whom which what s t".split()
)
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
).split()
_NUMBERS = {word: float(value) for value, word in enumerate(_UNITS)}


def cascade(prediction: str, golds: Sequence[str]) -> Step | None:
    """Return the first step at which the prediction agrees with a gold answer, or None."""
    found = [step for gold in golds if (step := _against(prediction, gold)) is not None]
    order: tuple[Step, ...] = ("exact", "number", "containment", "first_sentence", "key_phrase")
    return min(found, key=order.index, default=None)


def _against(prediction: str, gold: str) -> Step | None:
    said, wanted = _words(prediction), _words(gold)
    if not said or not wanted:
        return None
    if said == wanted:
        return "exact"
    if len(wanted) == 1 and (number := _number(wanted[0])) is not None:
        return "number" if number in map(_number, said) else None
    if contains_words(wanted, said):
        return "containment"
    sentences = sentence_spans(gold)
    if len(sentences) > 1 and contains_words(_words(gold[slice(*sentences[0])]), said):
        return "first_sentence"
    return "key_phrase" if _f1(said, wanted) >= F1_FLOOR else None


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word not in _ARTICLES]


def _number(word: str) -> float | None:
    if word in _NUMBERS:
        return _NUMBERS[word]
    try:
        number = float(word.replace(",", ""))
    except ValueError:
        return None
    return number if isfinite(number) else None  # Nan is a name


def _f1(said: Sequence[str], wanted: Sequence[str]) -> float:
    left = Counter(word for word in said if word not in _STOP)
    right = Counter(word for word in wanted if word not in _STOP)
    return multiset_f1(left, right)
