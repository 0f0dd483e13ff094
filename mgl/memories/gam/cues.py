"""What is known of an event beyond its meaning: when, by whom, and how surely (Eq. 11).

Source: GAM §3.4 and §4.1. The role indicator is speaker matching; the temporal and the confidence
cue are inferred with lightweight prompts, one call a topic when it is consolidated and one for a
question. By ``rules`` (``mgl.retrieval.cues``, ours) they cost no call.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pydantic import create_model

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.llm.calls import note_shown_only
from mgl.llm.constraints import index_set
from mgl.llm.prompting import fit_texts
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.prompts import CUES, TIME_SENSITIVE, number_lines
from mgl.memories.propose import StrictReply, propose, vary
from mgl.retrieval.cues import Implied, Marks, mark_turn, read_question
from mgl.types import Question, Turn

CUE_TOKENS = 400


class Cues(StrictReply):
    """Which utterances speak of time, and which are consistent."""

    temporal: list[int]
    consistent: list[int]


@dataclass(frozen=True, slots=True)
class Marked:
    """The marks of a topic's events. ``problem`` says why no reply could be used, where none could:
    then the events have their times and no cue."""

    marks: dict[int, Marks]
    call_key: str | None = None
    problem: str = ""


async def mark_events(
    llm: LLM, part: Sequence[int], turns: Sequence[Turn], config: GamConfig, *, time: int = 0
) -> Marked:
    """Mark the events of a topic. ``time`` counts earlier failures: each try is another call."""
    ruled = {number: mark_turn(turns[number]) for number in part}
    if config.indicators == "rules":
        return Marked(ruled)
    lines = await fit_texts(llm, [turns[number].line for number in part], reserve=CUE_TOKENS)
    indices = index_set(len(part))
    schema = create_model("cues", __base__=Cues, temporal=(indices, ...), consistent=(indices, ...))
    with note_shown_only(part):
        proposal = await propose(
            llm,
            CUES.render(dialogue_text=number_lines(lines)),
            schema,
            sampling=vary(config.make_sampling(CUE_TOKENS), time),
            stage="cues",
        )
    said = proposal.reply or Cues(temporal=[], consistent=[])
    marks = {
        number: Marks(place in said.temporal, place in said.consistent, ruled[number].times)
        for place, number in enumerate(part)
    }
    return Marked(marks, proposal.call_key, proposal.problem)


async def find_implied(
    llm: LLM, question: Question, speakers: Collection[str], config: GamConfig
) -> Implied:
    """What a question implies. ``speakers`` are those of the conversation."""
    implied = read_question(question, speakers)
    if config.indicators == "prompt":
        prompt = TIME_SENSITIVE.render(question=question.text)
        with suppress(ReplyInvalid):  # a server that gives no log-probabilities: the rule stands
            likely = await llm.probability_of_yes([Message("user", prompt)], stage="time_sensitive")
            return replace(implied, time_sensitive=likely > 0.5)
    return implied
