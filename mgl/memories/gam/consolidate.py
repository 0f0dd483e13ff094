"""Consolidation: the parts of a buffer become topics, linked to those most like them.

Source: GAM §3.3 (Eq. 7, 8), Algorithms 1 and 3, prompts E.1 and E.2. Everything is worked out on a
draft first; its rows go to the log in one transaction.

With ``summaries: extract`` (ours) a topic's summary and keywords are its most telling utterances
and words, by code: a keyword is frequent in the topic and rare among all turns so far (which counts
twice); an utterance is telling where it holds what the topic speaks of much and is not long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from math import sqrt
from typing import Annotated

from pydantic import Field

from mgl.llm.calls import showing_only
from mgl.llm.constraints import max_chars
from mgl.llm.prompting import fit_texts
from mgl.memories.base import Tools
from mgl.memories.gam.boundaries import Cut, Trigger
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.cues import mark_events
from mgl.memories.gam.prompts import RELATION, SUMMARY
from mgl.memories.gam.search import Search, WordSpread, search_text
from mgl.memories.gam.state import Check, Consolidate, Edit, Link, Relation, Rewrite, State, Topic
from mgl.memories.log import Draft
from mgl.memories.propose import Proposal, StrictReply, propose
from mgl.memories.told import find_assistants
from mgl.prompt import one_line
from mgl.retrieval.lexical import split_words
from mgl.text.stopwords import FUNCTION_WORDS, STOP_WORDS
from mgl.text.support import find_unsaid
from mgl.types import Turn

SUMMARY_TOKENS, RELATION_TOKENS = 260, 40
KEYWORDS, KEYWORD_CHARS, SUMMARY_CHARS = 8, 40, 400
UTTERANCES, UTTERANCE_CHARACTERS = 2, 400


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


class Consolidator:
    """Turns the parts of a buffer into linked topics, on a draft of the next step."""

    def __init__(
        self, tools: Tools, turns: Sequence[Turn], search: Search, config: GamConfig
    ) -> None:
        self._tools, self._turns = tools, turns
        self._search, self._config = search, config

    async def consolidate(self, draft: Draft[Edit, State], trigger: Trigger, cut: Cut) -> None:
        """Draft the topics that a cut of the buffer makes, and their links."""
        if cut.problem:
            draft.fail("boundaries", cut.problem)
        draft.put(Check(trigger.reason, trigger.turns[-1], cut.boundaries), call_key=cut.call_key)
        described = await asyncio.gather(*(self._describe(part) for part in cut.parts))
        marks = await asyncio.gather(
            *(mark_events(self._tools.llm, part, self._turns, self._config) for part in cut.parts)
        )
        for part, own, known in zip(cut.parts, described, marks, strict=True):
            summary, keywords = self._read(draft, own)
            topic = Topic(draft.state.next_topic, summary, keywords, part, known)
            earlier = draft.state
            draft.put(Consolidate(topic), call_key=own.call_key)
            await self._link(draft, topic, earlier)

    async def renew_summary(self, draft: Draft[Edit, State], topic: Topic) -> None:
        """Draft a summary of the turns that a topic has now."""
        own = await self._describe(topic.turns)
        draft.put(Rewrite(topic.id, *self._read(draft, own)), call_key=own.call_key)

    async def _describe(self, part: Sequence[int]) -> Proposal[Summary]:
        assistants = find_assistants([self._turns[number] for number in part])
        told = [number for number in part if self._turns[number].speaker not in assistants] or part
        lines = [self._turns[number].line for number in told]
        if self._config.summaries == "extract":
            return Proposal("summary", self._extract(told, lines))
        shown = await fit_texts(self._tools.llm, lines, reserve=SUMMARY_TOKENS)
        with showing_only(told):
            made = await propose(
                self._tools.llm,
                SUMMARY.render(content="\n".join(shown)),
                Summary,
                sampling=self._config.sampling(SUMMARY_TOKENS),
                stage="summary",
            )
        if made.reply is not None and find_unsaid(made.reply.summary, "\n".join(lines)):
            return replace(made, reply=self._extract(told, lines))
        return made

    def _extract(self, numbers: Sequence[int], lines: Sequence[str]) -> Summary:
        """Return the most telling utterances of some turns, and their keywords."""
        spread = self._search.spread
        spread.extend(self._turns, numbers[-1] + 1)
        return extract_summary(lines, spread)

    def _read(
        self, draft: Draft[Edit, State], proposal: Proposal[Summary]
    ) -> tuple[str, tuple[str, ...]]:
        """Summary and keywords, empty where no reply could be used."""
        if proposal.reply is None:
            self._tools.observer.note(f"a topic has no summary: {proposal.problem}")
            draft.fail("summary", proposal.problem)
            return "", ()
        return proposal.reply.summary, tuple(proposal.reply.keywords)

    async def _link(self, draft: Draft[Edit, State], topic: Topic, earlier: State) -> None:
        """Algorithm 3: edges to the candidates whose confidence is above the threshold."""
        config = self._config
        if config.without == "tan":
            return
        self._search.follow(earlier, self._turns)
        own = search_text(topic, self._turns)
        found = await self._search.find_alike(own, config.candidates)
        if config.relations == "similarity":
            likely = (min(1.0, max(0.0, cosine)) for _, cosine in found)
            judged = [
                Proposal("relation", Relate(relation="semantic", confidence=each))
                for each in likely
            ]
        else:
            others = (earlier.topics[name] for name, _ in found)
            judged = list(await asyncio.gather(*(self._relate(topic, other) for other in others)))
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

    async def _relate(self, topic: Topic, other: Topic) -> Proposal[Relate]:
        texts = [search_text(each, self._turns) for each in (topic, other)]
        one, two = await fit_texts(self._tools.llm, texts, reserve=RELATION_TOKENS)
        with showing_only({*topic.turns, *other.turns}):
            return await propose(
                self._tools.llm,
                RELATION.render(memory_1_content=one, memory_2_content=two),
                Relate,
                sampling=self._config.sampling(RELATION_TOKENS),
                stage="relation",
            )


def extract_summary(lines: Sequence[str], spread: WordSpread) -> Summary:
    """Summary and keywords of some lines, without a model."""
    keywords = spread.weigh(split_words(lines, FUNCTION_WORDS), 2)
    best_words = sorted(keywords, key=lambda word: (-keywords[word], word))[:KEYWORDS]
    bags = split_words(lines, STOP_WORDS)
    weights = spread.weigh(bags, 1)
    telling = [sum(weights[word] for word in set(bag)) / sqrt(1 + len(bag)) for bag in bags]
    best = sorted(range(len(lines)), key=lambda place: -telling[place])[:UTTERANCES]
    summary = " ".join(
        one_line(lines[place])[:UTTERANCE_CHARACTERS].rstrip() for place in sorted(best)
    )
    return Summary.model_construct(keywords=best_words, summary=summary)
