"""Consolidation: the parts of a buffer become topics, linked to those most like them.

Source: GAM §3.3 (Eq. 7, 8), Algorithms 1 and 3, prompts E.1 and E.2. Everything is worked out on a
draft first; its rows go to the log in one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from mgl.llm.calls import note_shown_only
from mgl.llm.constraints import max_chars
from mgl.llm.prompting import fit_texts
from mgl.memories.base import Tools
from mgl.memories.gam.boundaries import Cut, Trigger
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.cues import mark_events
from mgl.memories.gam.prompts import RELATION, SUMMARY
from mgl.memories.gam.search import Search, search_text
from mgl.memories.gam.state import (
    BoundaryCheck,
    Consolidate,
    Edit,
    GamState,
    Link,
    MarkEvents,
    Miss,
    Part,
    Relation,
    Rewrite,
    Topic,
)
from mgl.memories.log import Draft
from mgl.memories.propose import Proposal, StrictReply, propose, vary
from mgl.types import Turn

SUMMARY_TOKENS, RELATION_TOKENS = 260, 40
KEYWORDS, KEYWORD_CHARS, SUMMARY_CHARS = 8, 40, 400


class Summary(StrictReply):
    """E.2."""

    keywords: Annotated[
        list[Annotated[str, Field(min_length=1), max_chars(KEYWORD_CHARS)]],
        Field(min_length=1, max_length=KEYWORDS),
    ]
    summary: Annotated[str, Field(min_length=1), max_chars(SUMMARY_CHARS)]


class Relate(StrictReply):
    """E.1."""

    relation: Relation
    confidence: Annotated[float, Field(ge=0.0, le=1.0)]


@dataclass(frozen=True, slots=True)
class Described:
    """What a topic is about: ``summary`` and ``keywords`` (c_sum of Eq. 7).

    ``problem`` says why no reply could be used; both are then empty.
    """

    summary: str = ""
    keywords: tuple[str, ...] = ()
    call_key: str | None = None
    problem: str = ""


class Consolidator:
    """Turns the parts of a buffer into linked topics, on a draft of the next step."""

    def __init__(
        self, tools: Tools, turns: Sequence[Turn], search: Search, config: GamConfig
    ) -> None:
        self._tools, self._turns = tools, turns
        self._search, self._config = search, config

    async def consolidate(self, draft: Draft[Edit, GamState], trigger: Trigger, cut: Cut) -> None:
        """Draft the topics that a cut of the buffer makes, and their links."""
        if cut.problem:
            draft.fail("boundaries", cut.problem)
        draft.put(
            BoundaryCheck(trigger.reason, trigger.turns[-1], cut.boundaries), call_key=cut.call_key
        )
        described = await asyncio.gather(*(self._describe(part) for part in cut.parts))
        marks = await asyncio.gather(
            *(mark_events(self._tools.llm, part, self._turns, self._config) for part in cut.parts)
        )
        for part, own, known in zip(cut.parts, described, marks, strict=True):
            topic = Topic(draft.state.next_topic, own.summary, own.keywords, part, known.marks)
            earlier = draft.state
            draft.put(Consolidate(topic), call_key=own.call_key)
            self._note(draft, topic.id, "summary", own.problem)
            self._note(draft, topic.id, "cues", known.problem)
            await self._link(draft, topic, earlier)

    async def renew_summary(
        self, draft: Draft[Edit, GamState], topic: Topic, time: int = 0
    ) -> None:
        """Draft a summary of the turns that a topic has now. ``time`` counts earlier failures."""
        own = await self._describe(topic.turns, time)
        if own.problem:
            self._note(draft, topic.id, "summary", own.problem)
            return
        draft.put(Rewrite(topic.id, own.summary, own.keywords), call_key=own.call_key)

    async def renew_cues(self, draft: Draft[Edit, GamState], topic: Topic, time: int = 0) -> None:
        """Draft the cues of a topic's events. ``time`` counts earlier failures."""
        known = await mark_events(
            self._tools.llm, topic.turns, self._turns, self._config, time=time
        )
        if known.problem:
            self._note(draft, topic.id, "cues", known.problem)
        else:
            draft.put(MarkEvents(topic.id, known.marks), call_key=known.call_key)

    def _note(self, draft: Draft[Edit, GamState], topic: str, part: Part, problem: str) -> None:
        """Draft that a part of a topic is missing, if there is a problem."""
        if problem:
            self._tools.observer.note(f"{topic} has no {part}: {problem}")
            draft.fail(part, problem)
            draft.put(Miss(topic, part))

    async def _describe(self, part: Sequence[int], time: int = 0) -> Described:
        """Ask the model for the summary and the keywords of some turns (E.2)."""
        lines = [self._turns[number].line for number in part]
        shown = await fit_texts(self._tools.llm, lines, reserve=SUMMARY_TOKENS)
        with note_shown_only(part):
            made = await propose(
                self._tools.llm,
                SUMMARY.render(content="\n".join(shown)),
                Summary,
                sampling=vary(self._config.make_sampling(SUMMARY_TOKENS), time),
                stage="summary",
            )
        if made.reply is None:
            return Described(problem=made.problem)
        return Described(made.reply.summary, tuple(made.reply.keywords), made.call_key)

    async def _link(self, draft: Draft[Edit, GamState], topic: Topic, earlier: GamState) -> None:
        """Algorithm 3: edges to the candidates whose confidence is above the threshold."""
        config = self._config
        if config.without == "tan":
            return
        self._search.follow(earlier, self._turns)
        own = search_text(topic, self._turns)
        found = await self._search.find_alike(own, config.candidates)
        judged = await self._judge(topic, found, earlier)
        for (name, _), proposal in zip(found, judged, strict=True):
            reply = proposal.reply
            if reply is None:
                draft.fail("relation", f"{topic.id} to {name}")
                continue
            reason = None
            if reply.relation == "unrelated":
                reason = "unrelated"
            elif reply.confidence <= config.threshold:
                reason = "below_threshold"
            link = Link(topic.id, name, reply.relation, reply.confidence)
            draft.put(link, rejected=reason, call_key=proposal.call_key)

    async def _judge(
        self, topic: Topic, found: Sequence[tuple[str, float]], earlier: GamState
    ) -> Sequence[Proposal[Relate]]:
        """Ask for the relation of a new topic with each of some ``earlier`` ones, which are given
        with their cosine."""
        others = (earlier.topics[name] for name, _ in found)
        return await asyncio.gather(*(self._relate(topic, other) for other in others))

    async def _relate(self, topic: Topic, other: Topic) -> Proposal[Relate]:
        texts = [search_text(each, self._turns) for each in (topic, other)]
        one, two = await fit_texts(self._tools.llm, texts, reserve=RELATION_TOKENS)
        with note_shown_only({*topic.turns, *other.turns}):
            return await propose(
                self._tools.llm,
                RELATION.render(memory_1_content=one, memory_2_content=two),
                Relate,
                sampling=self._config.make_sampling(RELATION_TOKENS),
                stage="relation",
            )
