"""What a question asks for: whether an answer gives it, and whom it is about.

    >>> gives_what_is_asked("You will earn less.", "How much will I earn?")
    False
    >>> names_unknown_relative("What does my niece play?", "My sister has a son, Tim.")
    True

By words alone, since a small model calls nearly any answer an answer.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from mgl.text.support import find_telling
from mgl.text.timewords import MONTHS, ONES, TENS, WEEKDAYS

_ASKS_NUMBER: Final = re.compile(
    r"\bhow (?:much|many|old)\b|\bwhat\b.{0,200}\b(?:cost|earn|weigh)s?\b", re.IGNORECASE
)
_ASKS_NAME: Final = re.compile(r"\bnames?\b|\bwhat\b.{0,200}\bcalled\b", re.IGNORECASE)
_CHOICE: Final = re.compile(r"\bor\b", re.IGNORECASE)
_ASKS_THING: Final = re.compile(r"\b(?:what|which|who|whom|whose|where)\b", re.IGNORECASE)
_ASKS_TIME: Final = re.compile(
    r"\bwhen\b|\b(?:date|day|month|year|time|long|since|ago)s?\b", re.IGNORECASE
)
_NUMBER: Final = re.compile(
    rf"\d|\b(?:{'|'.join([*ONES, *TENS])}|hundred|thousand|million|dozen|half|both|couple|several|"
    r"once|twice|no|none|nothing|free)\b",
    re.IGNORECASE,
)
_TIMES: Final = (
    " ".join([*WEEKDAYS, *MONTHS])
    + " time day week month year hour minute morning afternoon evening night noon today tomorrow "
    "yesterday now then every each again last next same since until"
)
_RELATIVES: Final = (
    "mother mum mummy mom mommy mama parent",
    "father dad daddy papa parent",
    "sister sibling twin",
    "brother sibling twin",
    "wife girlfriend fiancée spouse partner marry married wedding",
    "husband boyfriend fiancé spouse partner marry married wedding",
    "son boy child children kid baby twin",
    "daughter girl child children kid baby twin",
    "grandmother grandma granny gran nan grandparent",
    "grandfather grandpa granddad grandparent",
    "grandson grandchild grandchildren",
    "granddaughter grandchild grandchildren",
    "aunt auntie",
    "uncle",
    "niece",
    "nephew",
    "cousin",
)
"""Relatives, each with the words that may speak of one."""


def asks_when(question: str) -> bool:
    """Whether a question asks for a time."""
    return _ASKS_TIME.search(question) is not None


def gives_what_is_asked(answer: str, question: str) -> bool:
    """Whether an answer has, beyond the question's own words, a number where one is asked for, a
    name where one is, and to "what", "which", "who" or "where" more than a time. A question that
    offers a choice may be answered by its own words."""
    if _CHOICE.search(question):
        return True
    asked = find_telling(question)
    own = [word for word in answer.split() if find_telling(word) - asked]
    if _ASKS_NUMBER.search(question):
        return any(map(_NUMBER.search, own))
    if _ASKS_NAME.search(question):
        return any(word.strip("\"'“‘(")[:1].isupper() for word in own)
    if _ASKS_THING.search(question) and not asks_when(question):
        return bool(find_telling(" ".join(own)) - _stems(_TIMES))
    return True


def names_unknown_relative(question: str, told: str) -> bool:
    """Whether a question is about a relative of whom a text does not speak."""
    known, relatives = find_telling(told), [_stems(words) for words in _RELATIVES]
    of_each = [[words for words in relatives if word in words] for word in find_telling(question)]
    return any(meant and not any(known & words for words in meant) for meant in of_each)


@cache
def _stems(words: str) -> frozenset[str]:
    return frozenset(find_telling(words))
