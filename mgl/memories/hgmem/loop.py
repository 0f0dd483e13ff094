"""The steps of one question: look for evidence, evolve the memory, judge it, until it suffices.

Source: HGMem §3.2, §3.4–3.6. Step 0 asks the query itself over the whole graph. Each later step
raises concerns about the memory as it is and a subquery for each, unless it suffices. A step is one
transaction of the log: a run that was ended goes on after the last whole step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM
from mgl.llm.prompting import SYSTEM
from mgl.memories.base import Tools
from mgl.memories.calls import CLAIM, SUPPORTED
from mgl.memories.hgmem.answering import PROMPTS, respond
from mgl.memories.hgmem.asking import Asker, Unreadable
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.edits import (
    Failed,
    Judge,
    Retrieve,
    Stop,
    StopReason,
    Subquery,
    edits_of,
    read,
    record,
)
from mgl.memories.hgmem.evidence import Evidence
from mgl.memories.hgmem.evolving import Evolver
from mgl.memories.hgmem.printed import CONCERNS, EVOLVE, MERGE, SUBQUERY
from mgl.memories.hgmem.prompts import (
    CONCERNS_JSON,
    EVOLVE_JSON,
    FOLLOW_UP,
    INSERT_JSON,
    MERGE_JSON,
    REPLACE_JSON,
    SUBQUERY_JSON,
    SUFFICIENT,
)
from mgl.memories.hgmem.proposals import Case, Concern, Concerns
from mgl.memories.hgmem.scope import beyond, neighbourhood
from mgl.memories.hgmem.small import SmallAsker
from mgl.memories.hgmem.state import Memory, Restart, replay
from mgl.prompt import Prompt
from mgl.store import EditRecord
from mgl.types import AnswerForm, Chunk, Question

__all__ = ["Loop", "is_finished", "writing_prompts"]

RESTARTS = 5
_HOPS = {"paper": 1, "released_code": 2}


def writing_prompts(config: HgMemConfig, form: AnswerForm) -> tuple[Prompt, ...]:
    """The prompts that decide what stands in the log of a question, which holds its answer, too, in
    the form that is wanted; those of the graph are the graph's."""
    if config.preset == "small":
        return (SYSTEM, CLAIM, SUPPORTED, SUFFICIENT, FOLLOW_UP, PROMPTS[form])
    if config.format == "delimiters":
        evolving: tuple[Prompt, ...] = (EVOLVE,)
        merge, judging = MERGE, (CONCERNS, SUBQUERY)
    else:
        evolving = (INSERT_JSON,)
        if config.update:
            evolving += (REPLACE_JSON if config.released else EVOLVE_JSON,)
        merge, judging = MERGE_JSON, (CONCERNS_JSON, SUBQUERY_JSON)
    return (
        *evolving,
        *((merge,) if config.merge else ()),
        *(judging if config.steps else ()),
        PROMPTS[form],
    )


def is_finished(rows: Sequence[EditRecord]) -> bool:
    """Whether a log says why its loop ended."""
    return any(row.op == "stop" for row in rows)


@dataclass(frozen=True, slots=True)
class _Past:
    """What a log says of the attempt that it is in."""

    memory: Memory
    step: int
    done: int
    asked: tuple[str, ...]
    read: frozenset[int]
    attempt: int


class Loop:
    """One question over one document's graph."""

    def __init__(
        self,
        tools: Tools,
        memory_id: str,
        question: Question,
        evidence: Evidence,
        chunks: Sequence[Chunk],
        config: HgMemConfig,
    ) -> None:
        self._tools = tools
        self._id = memory_id
        self._question = question
        self._evidence = evidence
        self._chunks = chunks
        self._config = config

    @property
    def _llm(self) -> LLM:
        return self._tools.llm

    async def run(self) -> None:
        """Take the steps that the log lacks. Raises the EngineError family."""
        store, last = self._tools.store, self._config.steps
        while not is_finished(rows := store.edits(self._id)):
            past = _past(rows)
            self._tools.observer.progress("steps", past.done, last + 1)
            try:
                made = await self._step(past)
            except Unreadable as error:
                given_up = past.attempt == RESTARTS
                row = record(past.step, Stop("failed") if given_up else Restart())
                self._tools.observer.note(f"a reply could not be read: {error}")
                made = [row]
            store.append_edits(self._id, past.step, made)

    async def _step(self, past: _Past) -> list[EditRecord]:
        asker = self._asker(past)
        rows, subqueries, ended = await self._subqueries(past, asker)
        if ended is not None:
            return await self._ended(rows, past.memory, past.step, ended)
        small, found = self._config.preset == "small", []
        for subquery in subqueries:
            scope = self._scope(subquery, past.memory)
            retrieved = await self._evidence.find(
                subquery.text, scope, past.memory, but=past.read if small else frozenset()
            )
            rows += [record(past.step, subquery), record(past.step, retrieved)]
            found.append(retrieved)
        evolver = Evolver(past.memory, past.step, self._evidence.graph, self._chunks, self._config)
        await self._evolve(evolver, asker, subqueries, found)
        rows += evolver.rows
        if past.done == self._config.steps:
            return await self._ended(rows, evolver.memory, past.step, "steps")
        if self._config.force_steps:
            rows += await self._answer(evolver.memory, past.step)
        return rows

    def _asker(self, past: _Past) -> Asker | SmallAsker:
        given = (self._llm, self._question.text, self._evidence.graph, self._chunks, self._config)
        if self._config.preset == "small":
            return SmallAsker(*given, step=past.done)
        return Asker(*given, step=past.done, attempt=past.attempt)

    async def _subqueries(
        self, past: _Past, asker: Asker | SmallAsker
    ) -> tuple[list[EditRecord], list[Subquery], StopReason | None]:
        """What is asked in this step, or why nothing is: of steps that are forced something is."""
        if past.done == 0:
            return [], [Subquery(self._question.text)], None
        rows, subqueries, ended = await self._raised(past, asker)
        if ended is not None and self._config.force_steps:
            return rows, [self._query_again(past.memory)], None
        return rows, subqueries, ended

    def _query_again(self, memory: Memory) -> Subquery:
        """The query itself beyond the memory; around its last point where no other way is open."""
        case = self._cases(memory)[-1]
        last = list(memory.points)[-1] if case == "2.1" else None
        return Subquery(self._question.text, case, point=last)

    async def _raised(
        self, past: _Past, asker: Asker | SmallAsker
    ) -> tuple[list[EditRecord], list[Subquery], StopReason | None]:
        """The subqueries of the concerns that a model raises, or why there are none."""
        try:
            said = await asker.concerns(past.memory, self._cases(past.memory))
        except ReplyInvalid as error:
            row = record(past.step, Failed("concerns", error.message), rejected="reply_invalid")
            return [row], [], "unjudged"
        concerns = self._open(said.proposal, past.memory)
        rows = [record(past.step, Judge(said.proposal.judgement), call_key=said.call_key)]
        if concerns.judgement == "1":
            return rows, [], "sufficient"
        numbers, asked = list(past.memory.points), list(past.asked)
        subqueries: list[Subquery] = []
        for concern in concerns.concerns:
            try:
                query = await asker.subquery(past.memory, concern, asked)
            except ReplyInvalid as error:
                failed = Failed("subquery", error.message)
                rows.append(record(past.step, failed, rejected="reply_invalid"))
                continue
            asked.append(query.proposal)
            point = None if concern.point is None else numbers[concern.point]
            subqueries.append(Subquery(query.proposal, concerns.judgement, concern.concern, point))
        return rows, subqueries, None if subqueries else "no_concerns"

    def _cases(self, memory: Memory) -> tuple[Case, ...]:
        """The cases of Fig. 6 that are open: a memory without points has none to investigate."""
        ways: tuple[Case, ...] = ("2.1", "2.2")
        if self._config.retrieval == "global_only" or not memory.points:
            ways = ("2.2",)
        elif self._config.retrieval == "local_only":
            ways = ("2.1",)
        return ways if self._config.force_steps else ("1", *ways)

    def _open(self, concerns: Concerns, memory: Memory) -> Concerns:
        """The concerns within the cases that are open: text with delimiters may name any case."""
        cases = self._cases(memory)
        if concerns.judgement in cases:
            return concerns
        if cases[-1] == "2.1":
            last = len(memory.points) - 1
            near = [Concern(point=last, concern=each.concern) for each in concerns.concerns]
            return Concerns(judgement="2.1", concerns=near)
        wide = [Concern(concern=each.concern) for each in concerns.concerns]
        return Concerns(judgement="2.2", concerns=wide)

    def _scope(self, subquery: Subquery, memory: Memory) -> frozenset[str]:
        """Where a subquery looks: Eq. 6, Eq. 7, or for the query itself the whole graph."""
        graph = self._evidence.graph
        if subquery.case == "2.1" and subquery.point is not None:
            around = memory.points[subquery.point].vertices
            return neighbourhood(memory, graph, around, hops=_HOPS[self._config.compat])
        if subquery.case == "2.2" and not self._config.released:
            return beyond(memory, graph)
        return frozenset(graph.entities)

    async def _evolve(
        self,
        evolver: Evolver,
        asker: Asker | SmallAsker,
        subqueries: Sequence[Subquery],
        found: Sequence[Retrieve],
    ) -> None:
        """Update and insert, then merge (Eq. 2, §3.5); nothing where nothing was found."""
        if any(one.entities or one.chunks for one in found):
            texts = [subquery.text for subquery in subqueries]
            try:
                said = await asker.evolution(evolver.memory, texts, found)
                evolver.evolve(said.proposal, found, said.call_key)
            except ReplyInvalid as error:
                evolver.fail("evolution", error.message)
        if self._config.merge and len(evolver.memory.points) > 1:
            try:
                merges = await asker.merges(evolver.memory)
                evolver.merge(merges.proposal, merges.call_key)
            except ReplyInvalid as error:
                evolver.fail("merges", error.message)

    async def _ended(
        self, rows: list[EditRecord], memory: Memory, step: int, reason: StopReason
    ) -> list[EditRecord]:
        answer = await self._answer(memory, step)
        if not any(row.outcome == "applied" for row in answer):
            reason = "failed"
        return [*rows, *answer, record(step, Stop(reason))]

    async def _answer(self, memory: Memory, step: int) -> list[EditRecord]:
        return await respond(
            self._llm, self._question, memory, step, self._evidence, self._chunks, self._config
        )


def _past(rows: Sequence[EditRecord]) -> _Past:
    step = rows[-1].chunk + 1 if rows else 0
    begun = max((row.chunk + 1 for row in rows if row.op == "restart"), default=0)
    said = [read(row) for row in rows if row.chunk >= begun]
    return _Past(
        memory=replay(edits_of(rows)),
        step=step,
        done=step - begun,
        asked=tuple(each.text for each in said if isinstance(each, Subquery))[1:],
        read=frozenset(n for each in said if isinstance(each, Retrieve) for n in each.chunks),
        attempt=sum(row.op == "restart" for row in rows),
    )
