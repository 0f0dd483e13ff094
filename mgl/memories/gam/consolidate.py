"""Consolidation: the parts of a buffer become topics, linked to those most like them.

Source: GAM §3.3 (Eq. 7, 8), Algorithms 1 and 3, prompts E.1 and E.2. Everything is worked out
first, on a state that nobody else sees; the rows go to the log together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mgl.errors import ReplyInvalid
from mgl.llm.base import Message
from mgl.llm.prompting import fit_texts
from mgl.memories.base import Tools
from mgl.memories.gam.boundaries import Cut, Look
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.edits import Judged, Summary, judged_all_schema, record
from mgl.memories.gam.extract import extracted
from mgl.memories.gam.indicators import encode
from mgl.memories.gam.prompts import BOUNDARIES, CUES, RELATION, RELATIONS, SUMMARY
from mgl.memories.gam.state import Check, Consolidate, Link, Rewrite, State, Topic, apply
from mgl.memories.gam.texts import likeness_text, numbered
from mgl.prompt import Prompt
from mgl.retrieval.base import Embedder
from mgl.retrieval.likeness import nearest
from mgl.store import EditRecord
from mgl.types import Turn

__all__ = ["consolidate", "renewed", "writing_prompts"]

SUMMARY_TOKENS, RELATION_TOKENS = 260, 40


def writing_prompts(config: GamConfig) -> tuple[Prompt, ...]:
    """The prompts that decide what a memory of this configuration holds."""
    semantic = config.partition == "semantic" and config.without != "ssm"
    judging = {"five": (RELATION,), "one": (RELATIONS,), "similarity": ()}
    return (
        *((BOUNDARIES,) if semantic else ()),
        *((SUMMARY,) if config.summaries == "prompt" else ()),
        *(() if config.without == "tan" else judging[config.relations]),
        *((CUES,) if config.indicators == "prompt" else ()),
    )


async def consolidate(
    tools: Tools,
    embedder: Embedder,
    state: State,
    turns: Sequence[Turn],
    look: Look,
    cut: Cut,
    config: GamConfig,
    step: int,
) -> list[EditRecord]:
    """The rows of one look at the buffer."""
    rows: list[EditRecord] = []
    if cut.failed is not None:
        rows.append(_failed(step, "boundaries", cut.failed))
    check = Check(look.trigger, look.turns[-1], cut.boundaries)
    rows.append(record(step, check, call_key=cut.call_key))
    state = apply(state, check)
    written = await asyncio.gather(*(_summary(tools, part, turns, config) for part in cut.parts))
    marks = await asyncio.gather(*(encode(tools.llm, part, turns, config) for part in cut.parts))
    for part, (summary, keywords, key, failed), known in zip(
        cut.parts, written, marks, strict=True
    ):
        if failed is not None:
            rows.append(_failed(step, "summary", failed))
        earlier = state
        made = Consolidate(Topic(state.next_topic, summary, keywords, part, known))
        state = apply(state, made)
        rows.append(record(step, made, call_key=key))
        for row, link in await _links(tools, embedder, earlier, made.topic, turns, config, step):
            rows.append(row)
            if link is not None:
                state = apply(state, link)
    return rows


async def renewed(
    tools: Tools, topic: Topic, turns: Sequence[Turn], config: GamConfig, step: int
) -> list[EditRecord]:
    """The rows that give a topic the summary of the turns that it has now."""
    summary, keywords, key, failed = await _summary(tools, topic.turns, turns, config)
    rows = [] if failed is None else [_failed(step, "summary", failed)]
    return [*rows, record(step, Rewrite(topic.id, summary, keywords), call_key=key)]


async def _summary(
    tools: Tools, part: Sequence[int], turns: Sequence[Turn], config: GamConfig
) -> tuple[str, tuple[str, ...], str | None, str | None]:
    """Summary, keywords, the key of the call, and why there is none where there is none."""
    lines = [turns[number].line for number in part]
    if config.summaries == "extract":
        seen = [turn.line for turn in turns[: part[-1] + 1]]
        return (*extracted(lines, seen), None, None)
    shown = await fit_texts(tools.llm, lines, reserve=SUMMARY_TOKENS)
    sampling = config.sampling(SUMMARY_TOKENS)
    prompt = SUMMARY.render(content="\n".join(shown))
    try:
        reply = await tools.llm.complete(
            [Message("user", prompt)], Summary, sampling=sampling, stage="summary"
        )
    except ReplyInvalid as error:
        tools.observer.note(f"a topic has no summary: {error.message}")
        return "", (), None, error.message
    return reply.parsed.summary, tuple(reply.parsed.keywords), reply.call_key, None


async def _links(
    tools: Tools,
    embedder: Embedder,
    state: State,
    topic: Topic,
    turns: Sequence[Turn],
    config: GamConfig,
    step: int,
) -> list[tuple[EditRecord, Link | None]]:
    """Algorithm 3: edges to the candidates whose confidence is above the threshold."""
    texts = {
        name: likeness_text(other, turns)
        for name, other in state.topics.items()
        if not other.frozen
    }
    if config.without == "tan" or not texts or not config.candidates:
        return []
    own = likeness_text(topic, turns)
    found = await nearest(embedder, own, texts, config.candidates, passage=True)
    candidates = [name for name, _ in found]
    judged: list[tuple[Judged | None, str | None]]
    if config.relations == "similarity":
        judged = [
            (Judged(relation="semantic", confidence=min(1.0, max(0.0, likely))), None)
            for _, likely in found
        ]
    elif config.relations == "one":
        judged = await _judge_all(tools, own, [texts[name] for name in candidates], config)
    else:
        judged = list(
            await asyncio.gather(*(_judge(tools, own, texts[name], config) for name in candidates))
        )
    rows: list[tuple[EditRecord, Link | None]] = []
    for name, (verdict, key) in zip(candidates, judged, strict=True):
        if verdict is None:
            rows.append((_failed(step, "relation", f"{topic.id} to {name}"), None))
            continue
        link = Link(topic.id, name, verdict.relation, verdict.confidence)
        reason = None
        if verdict.relation == "unrelated":
            reason = "unrelated"
        elif verdict.confidence <= config.threshold:
            reason = "below_threshold"
        row = record(step, link, rejected=reason, call_key=key)
        rows.append((row, None if reason else link))
    return rows


async def _judge(
    tools: Tools, own: str, other: str, config: GamConfig
) -> tuple[Judged | None, str | None]:
    one, two = await fit_texts(tools.llm, [own, other], reserve=RELATION_TOKENS)
    prompt = RELATION.render(memory_1_content=one, memory_2_content=two)
    sampling = config.sampling(RELATION_TOKENS)
    try:
        reply = await tools.llm.complete(
            [Message("user", prompt)], Judged, sampling=sampling, stage="relation"
        )
    except ReplyInvalid:
        return None, None
    return reply.parsed, reply.call_key


async def _judge_all(
    tools: Tools, own: str, others: Sequence[str], config: GamConfig
) -> list[tuple[Judged | None, str | None]]:
    budget = RELATION_TOKENS * len(others)
    first, *rest = await fit_texts(tools.llm, [own, *others], reserve=budget)
    prompt = RELATIONS.render(new=first, candidates=numbered(rest, first=1))
    sampling = config.sampling(budget)
    try:
        reply = await tools.llm.complete(
            [Message("user", prompt)],
            judged_all_schema(len(others)),
            sampling=sampling,
            stage="relation",
        )
    except ReplyInvalid:
        return [(None, None)] * len(others)
    return [(verdict, reply.call_key) for verdict in reply.parsed.relations]


def _failed(step: int, what: str, why: str) -> EditRecord:
    return EditRecord(step, "reply", {"of": what, "error": why}, "rejected", "reply_invalid")
