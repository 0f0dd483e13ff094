"""Read what a reply decides: a choice by its letter or text, a label by its name, TRUE or FALSE.

    >>> letter_longbench("The correct answer is **(B)**."), letter_longbench("B")
    ('B', None)
    >>> find_letter("(b) the red one", ("the blue one", "the red one"))
    'B'
    >>> find_verdict("FALSE. Daisy was driving."), find_verdict("I cannot tell.")
    (False, None)

| rule | source |
|---|---|
| ``letter_longbench`` | LongBench v2's ``extract_answer``: one of two sentences, A to D |
| ``right_dialsim`` | DialSim's ``judge_eq``: an option in brackets, and no other option |
| ``find_letter`` | ours: memories answer in a few words, which neither of the two reads |
| ``find_label`` | ours: a label by its name (Prelude) |
| ``find_verdict`` | ours: the first word; else TRUE or FALSE; else "the claim is true" |

A reply that names several, or none, decides nothing: that is a wrong answer, not a missing one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_uppercase

from mgl.benchmarks.base import Item
from mgl.evaluation.scorers.words import contains_words, squad_words

__all__ = [
    "find_label",
    "find_letter",
    "find_verdict",
    "gold_label",
    "gold_letter",
    "letter_longbench",
    "right_dialsim",
]

_LONGBENCH = (
    re.compile(r"The correct answer is \(([A-D])\)"),
    re.compile(r"The correct answer is ([A-D])"),
)
_WHY = r"(?:as|because|due|for|given|since)\b"
_LETTER = rf"([A-Z])\b(?!['’]|(?<=A)\s+(?!{_WHY})[a-z])"  # and not "A man"
_SENTENCE = re.compile(rf"The correct answer is \(?{_LETTER}")
_FIRST = re.compile(
    r"[\W_]*([A-Za-z])"
    r"(?:[).:\]*]+(?:\s|\Z)(?!\s*(?:or|and)\b)|[\W_]*(?:\n|\Z)"
    rf"|[,;]\s+(?!(?:[A-Za-z]|or|and)\b)|\s+[-–—]\s|\s+{_WHY})"
)
_NAMED = re.compile(rf"\b(?i:answer|option|choice)(?:\s+is)?\s*:?\s*[(\[*]*{_LETTER}")
_UN = r"(?:in|non-?)"
_BRACKETS = re.compile(r"[(\[]([A-Za-z])[)\]]")


def letter_longbench(reply: str) -> str | None:
    """Read the letter in "The correct answer is (X)" or "… is X", ignoring asterisks."""
    plain = reply.replace("*", "")
    for pattern in _LONGBENCH:
        if (found := pattern.search(plain)) is not None:
            return found[1]
    return None


def right_dialsim(reply: str, letter: str, count: int = 5) -> bool:
    """Whether the right option stands in the reply as ``(A)`` and no other of ``count`` does, in
    either case."""
    others = (other for other in ascii_uppercase[:count] if other != letter)
    return f"({letter})" in reply and not any(f"({other})" in reply.upper() for other in others)


def find_letter(reply: str, choices: Sequence[str]) -> str | None:
    """Find the letter that a reply of a few words chooses.

    In this order: LongBench's sentence with a letter that is no word's first; a letter that the
    reply begins with and that a bracket, a mark, a dash, the end of the line or a reason
    ("because") follows; the only letter after "answer", "option" or "choice"; the only letter in
    brackets; the only choice whose words the reply is, or else holds.
    """
    letters = ascii_uppercase[: len(choices)]
    sentence = _SENTENCE.search(reply.replace("*", ""))
    first = _FIRST.match(reply)
    for found in (
        sentence and sentence[1],
        first and first[1].upper(),
        _only(_NAMED, reply),
        _only(_BRACKETS, reply),
    ):
        if found is not None and found in letters:
            return found
    said = squad_words(reply)
    wanted = {letter: squad_words(text) for letter, text in zip(letters, choices, strict=True)}
    same = [letter for letter, words in wanted.items() if words == said]
    held = same or [letter for letter, words in wanted.items() if contains_words(words, said)]
    return held[0] if len(held) == 1 else None


def gold_letter(item: Item) -> str | None:
    """Return the letter of the right choice: the gold answer, or the place of its text."""
    letters = ascii_uppercase[: len(item.choices)]
    for gold in item.golds[:1]:
        letter = gold.strip("() ").upper()
        if len(letter) == 1 and letter in letters:
            return letter
        if gold in item.choices:
            return letters[item.choices.index(gold)]
    return None


def find_label(reply: str, labels: Sequence[str]) -> str | None:
    """The one label that a reply names and does not deny: its first word, else a word that begins
    with it (``contradicts``). Where it denies the one of two ("not consistent", "inconsistent"),
    the other."""
    words = squad_words(reply)
    for label in labels:
        if words and words[0] == label.lower():
            return label
    named = [label for label in labels if re.search(rf"\b{_UN}?{re.escape(label)}", reply, re.I)]
    if len(named) != 1:
        return None
    if not _is_denied(named[0], reply):
        return named[0]
    others = [label for label in labels if label != named[0]]
    return others[0] if len(others) == 1 else None


def gold_label(item: Item) -> str | None:
    """The gold answer as it stands among the choices, whatever its case; None if it does not."""
    wanted = [gold.strip().lower() for gold in item.golds[:1]]
    return next((each for each in item.choices if each.lower() in wanted), None)


def _is_denied(label: str, reply: str) -> bool:
    """Whether the label is said with one denial of the two that a reply can have, before it and in
    the word itself."""
    word = re.escape(label)
    before = re.search(rf"(?:\b(?:not|never|no)|n['’]t)\s+(?:\w+\s+)?{_UN}?{word}", reply, re.I)
    within = re.search(rf"\b{_UN}{word}", reply, re.I)
    return (before is None) != (within is None)


def _only(pattern: re.Pattern[str], reply: str) -> str | None:
    found = {letter.upper() for letter in pattern.findall(reply)}
    return found.pop() if len(found) == 1 else None


_FIRST_WORD = re.compile(r"[\W_]*(true|false)\b(?!\s*(?:or\b|/))", re.IGNORECASE)
_CAPITALS = re.compile(r"\b(TRUE|FALSE)\b")
_SAID = re.compile(
    r"\b(?:claim|statement|answer|verdict|it|this|that)(?:\s+is|\s*:)\s+(true|false)\b(?!\s+that\b)",
    re.IGNORECASE,
)


_EMPHASIS = re.compile(r"[*_`\"“”]")
_DENIED = re.compile(r"\b(?:(?:not|never)|(\w+)n['’]t)\s+(?:be\s+)?(true|false)\b", re.IGNORECASE)


def find_verdict(reply: str) -> bool | None:
    """Decide whether a reply says TRUE or FALSE; None if neither or both."""
    reply = _DENIED.sub(_opposite, _EMPHASIS.sub("", reply))
    if (first := _FIRST_WORD.match(reply)) is not None:
        return first[1].lower() == "true"
    for pattern in (_CAPITALS, _SAID):
        said = {word.lower() for word in pattern.findall(reply)}
        if said:
            return said == {"true"} if len(said) == 1 else None
    return None


def _opposite(denied: re.Match[str]) -> str:
    """Negate a denial: "not TRUE" is "FALSE", and "isn't true" is "is false"."""
    verb, word = denied.groups()
    other = "false" if word.lower() == "true" else "true"
    return " ".join(filter(None, (verb, other.upper() if word.isupper() else other)))
