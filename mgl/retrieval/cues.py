"""What is known of a turn beyond its words and its meaning: who said it, when, and whether it
states anything; and which of that a question asks for. By rules, without a model.

    >>> implied = read_question(Question("When did Ann move?"), {"Ann", "Bo"})
    >>> implied.time_sensitive, sorted(implied.speakers)
    (True, ['Ann'])

A question is time-sensitive where it asks when or how long, or names a time; a turn is temporal
where a date library finds an expression in it, and consistent where it does not end in a question.
The rules are made of English words, and find nothing in other languages but names. Ours, after the
indicators of GAM (§3.4, §4.1).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from mgl.text.times import TimeMention, time_mentions
from mgl.types import Question, Turn

ASSISTANT: Final = "assistant"
"""The speaker whose turns are the replies of a program to a person."""

_FIRST_PERSON: Final = re.compile(r"\b(i|me|my|mine|myself)\b", re.IGNORECASE)
_ASKS_TIME: Final = re.compile(
    r"\b(when|how (long|often|many (days|weeks|months|years)|soon|old)|what (time|day|date|month|"
    r"year|week)|which (day|date|month|year|week)|before|after|since|until|ago|recently|first|last|"
    r"latest)\b",
    re.IGNORECASE,
)
_CAPTION: Final = re.compile(r"\[image:[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Marks:
    """What is known of a turn: whether it mentions time, which ``times``, and whether it states
    something (GAM's Eq. 11: whether it passed the self-consistency check)."""

    temporal: bool = False
    consistent: bool = False
    times: tuple[TimeMention, ...] = ()


@dataclass(frozen=True, slots=True)
class Implied:
    """What a question implies: whether time matters and which, and whose words are meant."""

    time_sensitive: bool
    times: tuple[TimeMention, ...]
    speakers: frozenset[str]


def read_question(question: Question, speakers: Collection[str]) -> Implied:
    """Find what a question implies; ``speakers`` are those of the conversation."""
    times = tuple(time_mentions(question.text, question.asked_at))
    sensitive = bool(times) or bool(_ASKS_TIME.search(question.text))
    return Implied(sensitive, times, find_speakers(question, speakers))


def mark_turn(turn: Turn) -> Marks:
    """Find the marks of a turn."""
    times = tuple(time_mentions(turn.text, turn.time))
    return Marks(bool(times), is_statement(turn), times)


def is_statement(turn: Turn) -> bool:
    """Whether a turn says something and does not end in a question.

    A turn that tells something and then asks does not count: the weights of turns were measured
    that way. Citing goes by ``mgl.text.sentences.only_asks``, where such a turn counts.
    """
    said = _CAPTION.sub("", turn.text).strip()
    return bool(said) and not said.endswith("?")


def matches_time(marks: Marks, turn: Turn, implied: Implied) -> bool:
    """Whether a turn speaks of time in a way that matters to the question.

    Where the question names a time, the turn must speak of it or have been said in it.
    """
    if not implied.time_sensitive:
        return False
    if not implied.times:
        return marks.temporal
    said = [(time.begin, time.until) for time in marks.times]
    if turn.time is not None:
        said.append((turn.time.date(), turn.time.date()))
    return any(
        begin <= time.until and time.begin <= until
        for begin, until in said
        for time in implied.times
    )


def find_speakers(question: Question, speakers: Collection[str]) -> frozenset[str]:
    """The speakers whom a question means: those that it names, and its asker, who says "I".

    Of a talk with an assistant whoever else speaks is the asker, unless the question says who asks.
    """
    meant = {speaker for speaker in speakers if is_named(speaker, question.text)}
    if question.asker is not None:
        askers = {question.asker}.intersection(speakers)
    else:
        askers = {*speakers} - {ASSISTANT} if ASSISTANT in speakers else set()
    if askers and _FIRST_PERSON.search(question.text):
        meant |= askers
    return frozenset(meant)


def remove_names(question: str, speakers: Collection[str]) -> str:
    """Remove speakers' names from a question: "When did Ann paint?" becomes "When did paint?".

    A question of nothing but names stays as it is.
    """
    names = {name for speaker in speakers for name in (speaker, *speaker.split()[:1])}
    left = question
    named = (name for name in names if name and name in question)
    for name in sorted(named, key=lambda name: (-len(name), name)):
        left = re.sub(rf"\b{re.escape(name)}(?:['’]s)?(?!\w)", " ", left)
    return " ".join(left.split()) or question


def is_named(speaker: str, text: str) -> bool:
    """Whether a text names a speaker, who may be called Will or May: where anything but the text's
    first letter is a capital, names are expected to have one."""
    rest = re.sub(r"\bI\b", "i", text[1:])
    without_case = re.IGNORECASE if rest == rest.lower() else 0
    names = [speaker, *speaker.split()[:1]]
    folded = text.casefold() if without_case else text
    return any(
        re.search(rf"\b{re.escape(name)}\b", text, without_case)
        for name in names
        if name and (name.casefold() if without_case else name) in folded
    )
