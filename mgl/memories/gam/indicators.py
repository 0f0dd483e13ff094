"""What is known of an event beyond its meaning: when, by whom, and how surely (Eq. 11).

Source: GAM §3.4 and §4.1: the role indicator is speaker matching; the temporal and the confidence
cue are inferred with lightweight prompts, one call a topic when it is encoded and one for a
question. By ``rules`` they cost no call (ours): an event is temporal where a date library finds
an expression in it, and consistent where it does not end in a question; a question is
time-sensitive where it asks when or how long, or names a time.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.llm.prompting import fit_texts
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.edits import cues_schema
from mgl.memories.gam.prompts import CUES, TIME_SENSITIVE
from mgl.memories.gam.state import Marks
from mgl.memories.gam.texts import numbered
from mgl.text.times import TimeMention, time_mentions
from mgl.types import Question, Turn

__all__ = ["Asked", "asked", "encode", "marks_by_rules", "matches_time", "role_fits"]

CUE_TOKENS = 400
_ASKS_TIME = re.compile(
    r"\b(when|how (long|often|many (days|weeks|months|years)|soon|old)|what (time|day|date|month|"
    r"year|week)|which (day|date|month|year|week)|before|after|since|until|ago|recently|first|last|"
    r"latest)\b",
    re.IGNORECASE,
)
_CAPTION = re.compile(r"\[image:[^\]]*\]")
_FIRST_PERSON = re.compile(r"\b(i|me|my|mine|myself)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question implies: whether time matters and which, and whose words are meant."""

    time_sensitive: bool
    times: tuple[TimeMention, ...]
    speakers: frozenset[str]


def marks_by_rules(turn: Turn) -> Marks:
    """Marks of an event without a model."""
    times = tuple(time_mentions(turn.text, turn.time))
    said = _CAPTION.sub("", turn.text).strip()
    return Marks(bool(times), bool(said) and not said.endswith("?"), times)


async def encode(
    llm: LLM, part: Sequence[int], turns: Sequence[Turn], config: GamConfig
) -> dict[int, Marks]:
    """The marks of a topic's events, when it is encoded.

    Time expressions are resolved by the date library either way. A reply that stays invalid leaves
    the events without cues.
    """
    ruled = {number: marks_by_rules(turns[number]) for number in part}
    if config.indicators == "rules":
        return ruled
    lines = await fit_texts(llm, [turns[number].line for number in part], reserve=CUE_TOKENS)
    sampling = config.sampling(CUE_TOKENS)
    prompt = CUES.render(dialogue_text=numbered(lines))
    try:
        reply = await llm.complete(
            [Message("user", prompt)], cues_schema(len(part)), sampling=sampling, stage="cues"
        )
    except ReplyInvalid:
        return {number: Marks(times=ruled[number].times) for number in part}
    temporal, consistent = set(reply.parsed.temporal), set(reply.parsed.consistent)
    return {
        number: Marks(place in temporal, place in consistent, ruled[number].times)
        for place, number in enumerate(part)
    }


async def asked(
    llm: LLM, question: Question, speakers: Collection[str], config: GamConfig
) -> Asked:
    """What a question implies. ``speakers`` are those of the conversation."""
    times = tuple(time_mentions(question.text, question.asked_at))
    meant = {speaker for speaker in speakers if _names(question.text, speaker)}
    asker = question.asker
    if asker is not None and asker in speakers and _FIRST_PERSON.search(question.text):
        meant.add(asker)
    sensitive = bool(times) or bool(_ASKS_TIME.search(question.text))
    if config.indicators == "prompt":
        prompt = TIME_SENSITIVE.render(question=question.text)
        with suppress(ReplyInvalid):  # a server that gives no log-probabilities: the rule stands
            likely = await llm.probability_of_yes([Message("user", prompt)], stage="time_sensitive")
            sensitive = likely > 0.5
    return Asked(sensitive, times, frozenset(meant))


def role_fits(turn: Turn, what: Asked) -> bool:
    """Whether the turn's speaker is among those that the question implies."""
    return turn.speaker in what.speakers


def matches_time(marks: Marks, turn: Turn, what: Asked) -> bool:
    """Whether an event speaks of time in a way that matters to the question.

    Where the question names a time, the event must speak of it or have been said in it.
    """
    if not what.time_sensitive:
        return False
    if not what.times:
        return marks.temporal
    said = [(time.begin, time.until) for time in marks.times]
    if turn.time is not None:
        said.append((turn.time.date(), turn.time.date()))
    return any(
        begin <= time.until and time.begin <= until for begin, until in said for time in what.times
    )


def _names(text: str, speaker: str) -> bool:
    """Whether a text names a speaker, who may be called Will or May: where anything but its
    beginning is capitalised, names are expected to be."""
    rest = re.sub(r"\bI\b", "i", text[1:])
    without_case = re.IGNORECASE if rest == rest.lower() else 0
    names = [speaker, *speaker.split()[:1]]
    return any(name and re.search(rf"\b{re.escape(name)}\b", text, without_case) for name in names)
