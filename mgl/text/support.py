"""What of a text its source says, and what a model added: names, places and numbers.

    >>> find_unsaid("Mara moved to Paris at 28.", "Mara has moved to Lisbon.")
    ['Paris', '28']

Found by code, since a small model that is asked whether it invented says no. A capitalised word
counts as a name if it opens no sentence, or if the text is three words or fewer; a title ("Dr")
never does. Words are compared by their stems, numbers by their value ("seven" is 7). A whole date
("19 October", "May 3, 2023") is passed over, as it may be reckoned from "last week".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import fsum
from typing import Final

from mgl.prompt import pair_characters, plain_text
from mgl.text.timewords import MONTH_DAY, ONES, YEAR

_WORD: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*")
_OPENS: Final = re.compile(r"(?:^|[.!?:;\"“”‘(\[]|\n)\s*$")
DATE: Final = re.compile(rf"(?i:\b{MONTH_DAY}(?:,? \d{{4}}\b)?|\b{YEAR})")
"""A whole date, or a year."""
_BEFORE: Final = 40  # characters in which what opens a sentence is looked for
_TITLE: Final = re.compile(r"\b(?:Dr|Mrs?|Ms|Prof)\b\.?")
_NUMBERS: Final = {word: f"{value}" for value, word in enumerate(["zero", *ONES, "twenty"])}
_NO_NAMES: Final = frozenset(
    "i i'm i've i'll i'd ok you he she it they we the a an your my our his her their its in on at "
    "to for with from by yes no not nothing nobody none".split()
)
FEW: Final = 3
MOST_REPEATED: Final = 3
_FEW_WORDS: Final = frozenset(
    "a an the and or but of in on at to for with from by as is are was were be been am it its "
    "this that these those i me my mine we us our you your he him his he she her they them their "
    "do doe did have has had will would can not no so than then now who whom whose which what "
    "when where whi how there veri just also yes".split()
)
"""Stems that tell nothing of what a text is about."""


def find_unsaid(text: str, source: str, *, with_dates: bool = False) -> list[str]:
    """List the names and numbers of a text that its source lacks, in order; those of whole dates
    only if asked for."""
    known = set(stem_words(source))
    looked_at = _TITLE.sub("", text if with_dates else DATE.sub(" ", text))
    is_short = len(_WORD.findall(looked_at)) <= FEW
    found: dict[str, None] = {}
    for match in _WORD.finditer(looked_at):
        word = match[0]
        is_number = word[0].isdigit() or word.lower() in _NUMBERS
        is_name = word[0].isupper() and word.lower().replace("’", "'") not in _NO_NAMES
        start = match.start()
        if is_name and not is_short and _OPENS.search(looked_at, max(0, start - _BEFORE), start):
            is_name = False
        if (is_number or is_name) and not known.intersection(stem_words(word)):
            found[word] = None
    return list(found)


def stem_words(text: str) -> list[str]:
    """List the stems of a text's words, without possessive endings; numbers by their value."""
    return [_stem(word) for word in _WORD.findall(pair_characters(plain_text(text)))]


def find_repeated(answer: str, question: str, lines: Sequence[str]) -> list[int]:
    """Find the few lines that an answer repeats, in order: each adds words of the answer, or, where
    the answer has none of its own, has most words of the question. The latest of equal ones."""
    asked = find_telling(question)
    left = find_telling(answer) - asked
    is_new = bool(left)
    own = [find_telling(line) for line in lines]
    used: list[int] = []
    while own and len(used) < MOST_REPEATED:
        gains = [(len(left & words), len(asked & words), place) for place, words in enumerate(own)]
        gain, about, place = max(gains)
        if not gain and (is_new or not about):
            break
        used.append(place)
        left -= own[place]
        if not left:
            break
    return sorted(used)


def find_echoes(texts: Sequence[str], lines: Sequence[str]) -> list[int]:
    """Find the lines that repeat more than half of what one of some texts tells, in order.

    A word weighs the less the more lines have it; a text of one telling word tells too little.
    """
    own = [find_telling(line) for line in lines]
    held = Counter(word for words in own for word in words)

    def weigh(words: set[str]) -> float:
        return fsum(1 / max(1, held[word]) for word in words)

    told = [words for text in texts if len(words := find_telling(text)) > 1]
    return [
        place
        for place, words in enumerate(own)
        if any(2 * weigh(words & each) > weigh(each) for each in told)
    ]


def share_told(text: str, source: str) -> float:
    """The share of a text's telling words that a source has, by their stems; 1 for one of none."""
    words = find_telling(text)
    return len(words & find_telling(source)) / len(words) if words else 1.0


def find_telling(text: str) -> set[str]:
    """Find what of a text tells what it is about: its words' stems but for the commonest."""
    return set(stem_words(text)) - _FEW_WORDS


@lru_cache(maxsize=1 << 16)
def _stem(written: str) -> str:
    from Stemmer import Stemmer

    word = written.lower().replace("’", "'").removesuffix("'s").replace(",", "")
    return _NUMBERS.get(word) or str(Stemmer("english").stemWord(word))
