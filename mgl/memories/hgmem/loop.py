"""The steps of one question: look for evidence, evolve the memory, judge it, until it suffices.

Source: HGMem §3.2, §3.4–3.6. Step 0 asks the query itself over the whole graph. Each later step
raises concerns about the memory as it is and a subquery for each, unless it suffices. A step is
one transaction of the log: an interrupted run continues after the last whole step.

The answer is made from what all points say and the chunks of all entities of the memory; its bounds
are the released code's. Where there are more chunks than fit, those most like the query are read,
in the order of the text. The call that answers is that of every baseline, so that methods differ by
what they read alone (§4.3).
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mgl.errors import ReplyInvalid
from mgl.llm.base import Sampling
from mgl.llm.prompting import SYSTEM, take_leading
from mgl.memories.calls import answer_from_passages, passage_prompt
from mgl.memories.hgmem import prompts
from mgl.memories.hgmem.ask import PaperAsker
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.evidence import Evidence, neighbourhood
from mgl.memories.hgmem.evolve import Evolver
from mgl.memories.hgmem.printed import CONCERNS, EVOLVE, MERGE, SUBQUERY
from mgl.memories.hgmem.proposals import Concern, Concerns, Evolution, FollowUp, Merges
from mgl.memories.hgmem.state import (
    VOCABULARY,
    Case,
    ChosenCase,
    Counts,
    Edit,
    HypergraphMemory,
    Respond,
    Restart,
    Retrieve,
    Stop,
    StopReason,
    Subquery,
    find_start,
)
from mgl.memories.log import Draft, Log
from mgl.memories.propose import Proposal, ReplyT, recover
from mgl.observer import Observer
from mgl.prompt import Prompt, one_line
from mgl.store import EditRecord
from mgl.types import Question


class Asker(Protocol):
    """Asks the model, in one step of a question, to evolve the memory and to judge it."""

    async def evolution(
        self, memory: HypergraphMemory, subqueries: Sequence[str], found: Sequence[Retrieve]
    ) -> Proposal[Evolution]: ...

    async def merges(self, memory: HypergraphMemory) -> Proposal[Merges]: ...

    async def concerns(
        self, memory: HypergraphMemory, cases: tuple[Case, ...]
    ) -> Proposal[Concerns]: ...

    async def subquery(
        self, memory: HypergraphMemory, concern: Concern, history: Sequence[str]
    ) -> Proposal[FollowUp]: ...


RESTARTS = 5
PROMPT_TOKENS = 500  # of an answer's prompt, with the numbers before what it is shown


def writing_prompts(config: HgMemConfig, question: Question) -> tuple[Prompt, ...]:
    """The prompts that decide a question's log, its answer included; the graph has its own."""
    asked = [SYSTEM, passage_prompt(question)]
    if config.format == "delimiters":
        asked.append(EVOLVE)
        merge, judging = MERGE, [CONCERNS, SUBQUERY]
    else:
        asked.append(prompts.INSERT_JSON)
        if config.update:
            asked.append(prompts.REPLACE_JSON if config.released else prompts.EVOLVE_JSON)
        merge, judging = prompts.MERGE_JSON, [prompts.CONCERNS_JSON, prompts.SUBQUERY_JSON]
    if config.merge:
        asked.append(merge)
    return (*asked, *(judging if config.steps else ()))


def is_finished(rows: Sequence[EditRecord]) -> bool:
    """Whether the loop of a log has ended."""
    return bool(rows) and rows[-1].op == "stop"


def has_failed(rows: Sequence[EditRecord]) -> bool:
    """Whether the loop of a log ended without an answer."""
    return is_finished(rows) and rows[-1].payload["reason"] == "failed"


def count_found(rows: Sequence[EditRecord]) -> Counts:
    """Count what the steps of a log found since its last restart."""
    begun = find_start(rows)
    found: dict[int, list[Retrieve]] = {}
    for row in rows:
        if row.chunk >= begun and isinstance(said := VOCABULARY.parse(row), Retrieve):
            found.setdefault(row.chunk, []).append(said)
    chunks = ({number for each in step for number in each.chunks} for step in found.values())
    return Counts(len(found), sum(map(len, found.values())), sum(map(len, chunks)))


@dataclass(frozen=True, slots=True)
class Attempt:
    """The attempt a log is in: how many steps are ``done``, the subqueries ``asked``, the chunks
    ``read``, and the ``number`` of attempts before it."""

    done: int
    asked: tuple[str, ...]
    read: frozenset[int]
    number: int

    @classmethod
    def of(cls, rows: Sequence[EditRecord], step: int) -> Attempt:
        begun = find_start(rows)
        said = [VOCABULARY.parse(row) for row in rows if row.chunk >= begun]
        return cls(
            done=step - begun,
            asked=tuple(each.text for each in said if isinstance(each, Subquery))[1:],
            read=frozenset(n for each in said if isinstance(each, Retrieve) for n in each.chunks),
            number=sum(row.op == "restart" for row in rows),
        )


@dataclass(frozen=True, slots=True)
class SourcedAnswer:
    """An answer as the model gave it, and the places of the sources that it stands on, from 0."""

    text: str
    places: tuple[int, ...] = ()
    call_key: str | None = None


class Unreadable(Exception):
    """A reply could not be read; the released code then restarts the question."""


class Loop:
    """Answers one question over one document's graph.

    Raises the EngineError family, except ReplyInvalid, which becomes a row of the log.
    """

    def __init__(
        self, log: Log[Edit, HypergraphMemory], evidence: Evidence, observer: Observer
    ) -> None:
        self._log = log
        self._evidence = evidence
        self._observer = observer
        self._inquiry = evidence.inquiry
        self._config = evidence.inquiry.config

    async def run(self) -> None:
        """Take the steps the log lacks; a reply that failed last is asked for once more."""
        if has_failed(rows := self._log.rows):
            draft = self._log.draft()
            if any(row.op == "reply" and row.payload["what"] == "answer" for row in rows):
                await self._end(draft, "retried")
            else:
                draft.put(Restart())
            self._log.write(draft)
        while not is_finished(rows := self._log.rows):
            draft = self._log.draft()
            attempt = Attempt.of(rows, draft.step)
            self._observer.progress("steps", attempt.done, self._config.steps + 1)
            try:
                await self._take_step(draft, attempt)
            except Unreadable as error:
                self._observer.note(f"a reply could not be read: {error}")
                draft = self._log.draft()
                if attempt.number >= RESTARTS:
                    draft.mark(Stop("failed"))
                else:
                    draft.put(Restart())
            self._log.write(draft)

    def _open_asker(self, attempt: Attempt) -> Asker:
        """Open what asks the model in this step."""
        return PaperAsker(self._inquiry, step=attempt.done, attempt=attempt.number)

    def _pass_over(self, attempt: Attempt) -> frozenset[int]:
        """The chunks that a subquery does not find again: the paper's finds any."""
        del attempt
        return frozenset()

    async def _take_step(self, draft: Draft[Edit, HypergraphMemory], attempt: Attempt) -> None:
        asker = self._open_asker(attempt)
        subqueries, ended = await self._find_subqueries(draft, attempt, asker)
        if ended is not None:
            await self._end(draft, ended)
            return
        found: list[Retrieve] = []
        for subquery in subqueries:
            scope = self._find_scope(subquery, draft.state)
            without = self._pass_over(attempt)
            find = self._evidence.find
            found.append(await find(subquery.text, scope, draft.state, without=without))
            draft.mark(subquery)
            draft.mark(found[-1])
        await self._evolve(draft, asker, [subquery.text for subquery in subqueries], found)
        if attempt.done == self._config.steps:
            await self._end(draft, "steps")
        elif self._config.force_steps:
            await self._answer(draft)

    async def _find_subqueries(
        self, draft: Draft[Edit, HypergraphMemory], attempt: Attempt, asker: Asker
    ) -> tuple[list[Subquery], StopReason | None]:
        """The subqueries of this step, or why there are none; a forced step always has one."""
        query, memory = self._inquiry.question.text, draft.state
        if attempt.done == 0:
            return [Subquery(query)], None
        subqueries, ended = await self._raise_concerns(draft, attempt, asker)
        if ended is None or not self._config.force_steps:
            return subqueries, ended
        # The query itself, around the point most like it where no other way is open.
        case = self._find_cases(memory)[-1]
        near = await self._evidence.rank_points(query, memory) if case == "2.1" else [None]
        return [Subquery(query, case, point=near[0])], None

    async def _raise_concerns(
        self, draft: Draft[Edit, HypergraphMemory], attempt: Attempt, asker: Asker
    ) -> tuple[list[Subquery], StopReason | None]:
        """The subqueries of the concerns that a model raises, or why there are none.

        Delimited text may raise more than were asked for; only the first are followed.
        """
        memory = draft.state
        judging = asker.concerns(memory, self._find_cases(memory))
        said = await self._recover(draft, "concerns", judging)
        if said.reply is None:
            return [], "unjudged"
        draft.mark(ChosenCase(said.reply.judgement), call_key=said.call_key)
        concerns = await self._hold_to_cases(said.reply, memory)
        if concerns.judgement == "1":
            return [], "sufficient"
        numbers, asked = list(memory.points), list(attempt.asked)
        subqueries: list[Subquery] = []
        for concern in concerns.concerns[: self._config.concerns]:
            asking = asker.subquery(memory, concern, asked)
            query = await self._recover(draft, "subquery", asking)
            if query.reply is None:
                continue
            text = query.reply.subquery
            asked.append(text)
            point = None if concern.point is None else numbers[concern.point]
            subqueries.append(Subquery(text, concerns.judgement, concern.concern, point))
        return subqueries, None if subqueries else "no_concerns"

    def _find_cases(self, memory: HypergraphMemory) -> tuple[Case, ...]:
        """The cases of Fig. 6 that are open; a memory without points has none to investigate."""
        ways: tuple[Case, ...] = ("2.1", "2.2")
        if self._config.retrieval == "global_only" or not memory.points:
            ways = ("2.2",)
        elif self._config.retrieval == "local_only":
            ways = ("2.1",)
        return ways if self._config.force_steps else ("1", *ways)

    async def _hold_to_cases(self, concerns: Concerns, memory: HypergraphMemory) -> Concerns:
        """Move concerns into a case that is open: delimited text may name any."""
        cases = self._find_cases(memory)
        if concerns.judgement in cases:
            return concerns
        held = [
            Concern(point=await self._find_place(each, cases[-1], memory), concern=each.concern)
            for each in concerns.concerns
        ]
        return Concerns(judgement=cases[-1], concerns=held)

    async def _find_place(
        self, concern: Concern, case: Case, memory: HypergraphMemory
    ) -> int | None:
        """The place of the point most like a concern, in case 2.1."""
        if case != "2.1":
            return None
        nearest, *_ = await self._evidence.rank_points(concern.concern, memory)
        return list(memory.points).index(nearest)

    def _find_scope(self, subquery: Subquery, memory: HypergraphMemory) -> frozenset[str]:
        """The entities a subquery searches: Eq. 6, Eq. 7, or the whole graph for the query
        itself."""
        graph = self._inquiry.graph
        if subquery.case == "2.1" and subquery.point is not None:
            around = memory.points[subquery.point].vertices
            return neighbourhood(memory, graph, around, hops=2 if self._config.released else 1)
        if subquery.case == "2.2" and not self._config.released:
            return frozenset(graph.entities.keys() - memory.vertices.keys())
        return frozenset(graph.entities)

    async def _evolve(
        self,
        draft: Draft[Edit, HypergraphMemory],
        asker: Asker,
        subqueries: Sequence[str],
        found: Sequence[Retrieve],
    ) -> None:
        """Update and insert, then merge (Eq. 2, §3.5), unless nothing was found."""
        evolver = Evolver(draft, self._inquiry)
        if any(one.entities or one.chunks for one in found):
            proposing = asker.evolution(draft.state, subqueries, found)
            said = await self._recover(draft, "evolution", proposing)
            if said.reply is not None:
                evolver.evolve(said.reply, found, said.call_key)
        if self._config.merge and len(draft.state.points) > 1:
            merges = await self._recover(draft, "merges", asker.merges(draft.state))
            if merges.reply is not None:
                evolver.merge(merges.reply, merges.call_key)

    async def _recover(
        self, draft: Draft[Edit, HypergraphMemory], what: str, call: Awaitable[Proposal[ReplyT]]
    ) -> Proposal[ReplyT]:
        """Await a proposal. One without a reply is recorded; the released code restarts then."""
        said = await recover(call, what)
        if said.reply is None:
            if self._config.released:
                raise Unreadable(said.problem)
            draft.fail(what, said.problem)
        return said

    async def _end(self, draft: Draft[Edit, HypergraphMemory], reason: StopReason) -> None:
        is_answered = await self._answer(draft)
        draft.mark(count_found([*self._log.rows, *draft.rows]))
        draft.mark(Stop(reason if is_answered else "failed"))

    async def _answer(self, draft: Draft[Edit, HypergraphMemory]) -> bool:
        """Answer from the memory as it is; False if no reply could be used.

        An empty memory is answered from the chunks nearest to the query, as many as a subquery
        finds.
        """
        llm, question, config = self._inquiry.llm, self._inquiry.question, self._config
        chunks, vertices = self._inquiry.chunks, draft.state.vertices.values()
        tied = sorted({chunk for vertex in vertices for chunk in vertex.chunks})
        room = llm.context_tokens - config.answer_tokens - PROMPT_TOKENS
        room -= sum(await llm.count_tokens([question.text]))
        points = await self._fit_points(draft.state, room)
        most = config.answer_chunks if tied else config.chunks
        best = await self._evidence.best_chunks(question.text, tied or None, most)
        room -= sum(await llm.count_tokens(points)) if points else 0
        texts = [one_line(chunks[number].text) for number in best]
        fitting = await take_leading(llm, texts, min(config.answer_chunk_tokens, room))
        best = best[: len(fitting)]
        read = sorted(best)
        texts = [one_line(chunks[number].text) for number in read]
        try:
            said = await self._say(points, texts, config.sample_answer(draft.step))
        except ReplyInvalid as error:
            draft.fail("answer", error.message)
            return False
        cited = tuple(read[place] for place in said.places)
        draft.mark(Respond(said.text, cited, tuple(best)), call_key=said.call_key)
        return True

    async def _fit_points(self, memory: HypergraphMemory, room: int) -> list[str]:
        """The points that an answer is shown, in order; those most like the query where not all
        have ``room``, in tokens."""
        llm, lines = self._inquiry.llm, dict(zip(memory.points, self._list(memory), strict=True))
        if not lines or sum(await llm.count_tokens(list(lines.values()))) <= room:
            return list(lines.values())
        ranked = await self._evidence.rank_points(self._inquiry.question.text, memory)
        kept = await take_leading(llm, [lines[number] for number in ranked], room)
        return [lines[number] for number in sorted(ranked[: len(kept)])]

    def _list(self, memory: HypergraphMemory) -> list[str]:
        """The points as an answer is shown them: what they say (§3.6)."""
        return [one_line(point.description) for point in memory.points.values()]

    async def _say(
        self, points: Sequence[str], texts: Sequence[str], sampling: Sampling
    ) -> SourcedAnswer:
        """Answer from points and the texts of chunks, by the call that every method shares.

        Raises the EngineError family, ReplyInvalid too.
        """
        llm, question = self._inquiry.llm, self._inquiry.question
        reply = await answer_from_passages(llm, [*points, *texts], question, sampling=sampling)
        return SourcedAnswer(reply.text, call_key=reply.call_key)
