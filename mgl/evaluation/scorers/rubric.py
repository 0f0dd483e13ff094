"""What a rubric asks of an answer, as far as it can be told without a model: BEAM's.

    >>> share_stated(["LLM response should state: 8 weeks"], "That is eight weeks, 56 days.")
    1.0
    >>> score_order(["set up", "test", "deploy"], ["set up", "test", "deploy"]).tau
    1.0

Source: ``compute_metrics.py`` of BEAM's repository, for the order of events; the numbers and dates
are ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

from mgl.evaluation.scorers.words import f1
from mgl.text import sentence_spans
from mgl.text.support import stem_words
from mgl.text.timewords import MONTHS

_ASKS: Final = re.compile(r"^LLM response should \w+(?: that)?:?\s*", re.IGNORECASE)
_JOINING: Final = frozenset("from to till until between and of in on at per about a an the".split())
_MONTH_STEMS: Final = frozenset(stem for month in MONTHS for stem in stem_words(month))
_ORDINAL: Final = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_NUMBERED: Final = re.compile(r"(?:^|(?<=\s))\(?\d{1,2}[.)]\s")
_YEAR: Final = re.compile(r"[12]\d{3}")
OTHER_WORDS: Final = 1
"""How many words beside numbers, months and prepositions such an item may have: their unit."""


def share_stated(rubric: Sequence[str], answer: str) -> float | None:
    """Compute the share of a rubric's numbers and dates that one sentence of the answer states.

    An item counts if it is a number with at most one other word, or a date. All of it has to stand
    in one sentence, in digits or words; the year of a whole date need not. None if no item counts.
    English.
    """
    wanted = [value for item in rubric if (value := _read_value(item))]
    if not wanted:
        return None
    said = [_list_words(answer[slice(*span)]) for span in sentence_spans(answer)]
    return sum(any(value <= words for words in said) for value in wanted) / len(wanted)


def _read_value(item: str) -> frozenset[str]:
    """The stems that an answer has to state; none if the item is no number or date."""
    words = _list_words(_ASKS.sub("", item.strip())) - _JOINING
    numbers = {word for word in words if word[0].isdigit()}
    months = words & _MONTH_STEMS
    if not numbers or len(words - numbers - months) > OTHER_WORDS:
        return frozenset()
    if months and len(numbers) > len(months):
        return words - {number for number in numbers if _YEAR.fullmatch(number)}
    return words


def _list_words(text: str) -> frozenset[str]:
    return frozenset(stem_words(_ORDINAL.sub("", text)))


def list_events(answer: str) -> list[str]:
    """List the events that an answer names: its lines, as BEAM's script takes them, empty ones too.

    Those of an answer on a single line, which the script would take for one event, are the parts
    that it numbers, or else its sentences; this is ours.

        >>> list_events("1) the tests, 2) the release")
        ['the tests,', 'the release']
    """
    if "\n" in answer:
        return answer.split("\n")
    numbered = [part.strip() for part in _NUMBERED.split(answer)]
    if len(numbered) > 2:
        return [part for part in numbered if part]
    return [answer[slice(*span)].strip() for span in sentence_spans(answer)] or [answer]


@dataclass(frozen=True, slots=True)
class Order:
    """How well events that an answer lists agree with a reference: F1 of their sets, and Kendall's
    tau-b of their ranks brought to 0 to 1, None if a single event leaves nothing to order."""

    f1: float
    tau: float | None


def score_order(reference: Sequence[str], said: Sequence[str]) -> Order:
    """Compare two lists, in which the same event is the same text.

    As in the script, the ranks are those in the union of both; what a list lacks shares one rank
    after all others, and of two equal entries the later gives the rank.
    """
    common = len({*reference} & {*said})
    wrong = sum(each not in reference for each in said)
    lacking = sum(each not in said for each in reference)
    union = list(dict.fromkeys([*reference, *said]))
    ranks = [_rank(each, union) for each in (reference, said)]
    tau = _kendall_tau_b(*ranks)
    return Order(
        f1(common, common + wrong, common + lacking), None if tau is None else (tau + 1) / 2
    )


def _rank(listed: Sequence[str], union: Sequence[str]) -> list[int]:
    places = {each: place for place, each in enumerate(listed, start=1)}
    return [places.get(each, len(union) + 1) for each in union]


def _kendall_tau_b(one: Sequence[int], other: Sequence[int]) -> float | None:
    """Kendall's tau-b, -1 to 1; None if either has all ranks equal."""
    agreeing = untied_one = untied_other = 0
    for place, (first, second) in enumerate(zip(one, other, strict=True)):
        for third, fourth in zip(one[:place], other[:place], strict=True):
            here, there = _sign(first - third), _sign(second - fourth)
            agreeing += here * there
            untied_one += here != 0
            untied_other += there != 0
    pairs = untied_one * untied_other
    return agreeing / sqrt(pairs) if pairs else None


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)
