"""MindGraph's deterministic cascade: checks that decide an answer before a judge is asked.

Source: MindGraph D.4: exact match, normalised number, containment, first-sentence containment,
key-phrase token-F1 ≥ 0.5. The paper names the steps but prints no rules; these are ours, and what
they decide is no metric of any benchmark. They take what is surely right and leave the rest, right
answers in other words too, to the judge:

1. exact: the same words, whatever case, punctuation, articles and ways to write a number
2. number: the gold answer is one number, and the only number of the prediction
3. containment: the gold answer's words stand in the prediction, together and in order
4. first sentence: the same for the gold answer's first sentence
5. key phrase: multiset F1 of the words that are no stop words is at least 0.5, and all of the gold
   answer's are there in order; a list's items and a date's parts in any order

From the third step on the prediction has to say and deny what the gold answer does: no "not", "or"
or "instead of" that the gold answer lacks, no other number, and a name that is the whole name (not
"John Carter's son", "New York Times", "step-mother" or "Rome and Paris").

    >>> cascade("He went to Rome.", ["Rome"])
    'containment'
    >>> cascade("In May 1913.", ["May 1912"]) is None
    True
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Final, Literal

from mgl.evaluation.scorers.words import multiset_f1
from mgl.text import sentence_spans

Step = Literal["exact", "number", "containment", "first_sentence", "key_phrase"]
_ORDER: Final[tuple[Step, ...]] = (
    "exact",
    "number",
    "containment",
    "first_sentence",
    "key_phrase",
)
F1_FLOOR: Final = 0.5
_WORD = re.compile(r"\$?\d+(?:[.,]\d+)*(?:st|nd|rd|th)?|[^\W\d_]+(?:['’][^\W\d_]+)?|\d+\w+")
_ARTICLES = frozenset(("a", "an", "the"))
_DENYING = frozenset(
    "not no never neither nor cannot without except unlike instead rather or either".split()
)
_STOP = _ARTICLES | frozenset(
    "and of in on at with as is are was were be been being it its he she his her him they them "
    "their that this these those who whom which what has have had do does did i you we both also "
    "for".split()
)
_ROLES = frozenset("by from to before after since until above below over under".split())
_TITLES = frozenset("mr mrs ms miss dr captain lord lady sir king queen prince princess".split())
_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty"
).split()
_NUMBERS = {word: str(value) for value, word in enumerate(_UNITS)}
_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)


class _Word:
    """A word as it is compared, as it is written, and where it stands."""

    def __init__(self, found: re.Match[str], text: str) -> None:
        written = found[0]
        plain = re.sub(r"['’]s$", "", written)
        low = plain.lower().replace("’", "'")
        if low[0].isdigit() or low[0] == "$":
            low = re.sub(r"(?:st|nd|rd|th)$", "", low.replace(",", "").lstrip("$"))
        self.norm = _NUMBERS.get(low, low)
        self.is_owner = plain != written
        self.is_name = written[0].isupper()
        self.glue = text[found.end() : found.end() + 1]
        self.before = text[max(0, found.start() - 1) : found.start()]


def cascade(prediction: str, golds: Sequence[str]) -> Step | None:
    """Return the first step at which the prediction agrees with a gold answer, or None."""
    found = [step for gold in golds if (step := _against(prediction, gold)) is not None]
    return min(found, key=_ORDER.index, default=None)


def _against(prediction: str, gold: str) -> Step | None:
    said, wanted = list(_words(prediction)), list(_words(gold))
    if not said or not wanted:
        return None
    norms, golden = [word.norm for word in said], [word.norm for word in wanted]
    if norms == golden and [w.is_owner for w in said][-1:] == [w.is_owner for w in wanted][-1:]:
        return "exact"
    if golden in (["yes"], ["no"]):
        both = {"yes", "no"} <= {*norms}
        return (
            "containment" if norms[0] == golden[0] and said[0].glue in ".," and not both else None
        )
    if _denies(norms, golden) or not (numbers := _numbers(said)) <= _numbers(wanted):
        return None
    if len(golden) == 1 and _numbers(wanted):
        return "number" if numbers else None
    if (whole := _contains(wanted, said)) is not None:
        return "containment" if whole else None
    sentences = sentence_spans(gold)
    first = list(_words(gold[slice(*sentences[0])])) if len(sentences) > 1 else []
    if first and _contains(first, said):
        return "first_sentence"
    return "key_phrase" if _has_key_phrase(wanted, said, gold) else None


def _words(text: str) -> Iterator[_Word]:
    for found in _WORD.finditer(text):
        if found[0].lower() not in _ARTICLES:
            yield _Word(found, text)


def _numbers(words: Sequence[_Word]) -> set[str]:
    return {word.norm for word in words if word.norm[0].isdigit()}


def _denies(said: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether one of the two denies, or leaves open, what the other does not."""

    def denials(words: Sequence[str]) -> set[str]:
        return {word for word in words if word in _DENYING or word.endswith("n't")}

    return denials(said) != denials(wanted)


def _contains(wanted: Sequence[_Word], said: Sequence[_Word]) -> bool | None:
    """Whether the words stand together as a whole; None if they do not stand together at all."""
    size, golden = len(wanted), [word.norm for word in wanted]
    starts = [
        start
        for start in range(len(said) - size + 1)
        if [word.norm for word in said[start : start + size]] == golden
    ]
    return any(_is_whole(wanted, said, start) for start in starts) if starts else None


def _is_whole(wanted: Sequence[_Word], said: Sequence[_Word], start: int) -> bool:
    """Whether the words from ``start`` are no part of a longer name, word or list."""
    end = start + len(wanted)
    last, after = said[end - 1], said[end] if end < len(said) else None
    before = said[start - 1] if start else None
    if said[start].before == "-" or last.glue == "-" or last.is_owner != wanted[-1].is_owner:
        return False
    if not wanted[-1].is_name:
        return True
    if after is not None and after.is_name and last.glue == " ":
        return False
    if after is not None and after.norm == "and" and end + 1 < len(said) and said[end + 1].is_name:
        return False
    named = before is not None and before.is_name and before.glue == " " and start > 1
    return not named or (before is not None and before.norm in _TITLES)


def _has_key_phrase(wanted: Sequence[_Word], said: Sequence[_Word], gold: str) -> bool:
    names = {word.norm for word in wanted if word.is_name}
    key, own = _key_words(wanted, names), _key_words(said, names)
    if multiset_f1(Counter(own), Counter(key)) < F1_FLOOR or Counter(key) - Counter(own):
        return False
    owners = {_stem(word.norm) for word in said if word.is_owner}
    if {*own} & _ROLES != {*key} & _ROLES or (key[-1] in owners and not wanted[-1].is_owner):
        return False
    if _is_date(wanted) or re.search(r",|\band\b|&", gold):
        return True
    left = iter(own)
    return all(any(word == other for other in left) for word in key)


def _is_date(words: Sequence[_Word]) -> bool:
    return all(word.norm in _MONTHS or word.norm[0].isdigit() for word in words)


def _key_words(words: Sequence[_Word], names: Collection[str]) -> list[str]:
    """The stems of the words that are no stop words; a name is not stemmed."""
    kept = [(word.norm, _stem(word.norm)) for word in words if word.norm not in _STOP]
    return [norm if {norm, stem} & {*names} else stem for norm, stem in kept]


@cache
def _stem(word: str) -> str:
    from Stemmer import Stemmer

    return str(Stemmer("english").stemWord(word))
