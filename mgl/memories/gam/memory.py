"""GAM as a memory: one conversation, in which it is told turn after turn and asked in between.

    memory = Gam(tools, Conversation.named("diary"))
    await memory.append(Turn("1", "Ann", "I have got the job!"))
    answer = await memory.answer(Question("Did Ann get the job?"))

A turn that is appended is in the log before ``append`` returns. Where it gives occasion to, the
buffer is consolidated then and there, in one transaction: a process killed at any moment leaves the
buffer or the topics, never half of one, and the next one goes on with what was due.
Several processes may write: each step has a number, whoever comes second reads the log again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from mgl.errors import InputError, UsageError
from mgl.memories.base import Tools, check_ids, memory_id
from mgl.memories.calls import answer_from_turns, reply_to_turn
from mgl.memories.gam.boundaries import Look, cut, due
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.consolidate import consolidate, renewed, writing_prompts
from mgl.memories.gam.control import Forgotten, chosen, freezing, rewriting, unlinking
from mgl.memories.gam.export import exported
from mgl.memories.gam.forgetting import (
    DERIVED,
    Filter,
    filtered,
    private_parts,
    shown,
    treated,
)
from mgl.memories.gam.ledger import Ledger
from mgl.memories.gam.meaning import Contexts
from mgl.memories.gam.reading import Reading, memories, ranked, read, trace
from mgl.memories.gam.state import State, Topic
from mgl.memories.gam.view import viewed
from mgl.memories.view import GraphView
from mgl.store import EditRecord, MemoryRecord
from mgl.store.redaction import Redaction, Treated
from mgl.types import Answer, Conversation, Question, Source, Turn

__all__ = ["KIND", "Gam"]

KIND = "gam"
RECENT = 6  # turns shown as they are


class Gam:
    """The memory of one conversation.

    ``id`` is a hash of all that decides its log; a conversation that grows keeps it. ``identity``
    stands for it where a memory that is there is gone on with by another model. ``filters`` find
    what must not be remembered: it is masked, for good, before a model is shown the turn.
    """

    reads: Final = "conversation"
    retrieves: Final = True
    per_question: Final = False
    question_aware: Final = False
    derived: Final = DERIVED
    shown: Final = staticmethod(shown)
    Config = GamConfig

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: GamConfig | None = None,
        *,
        identity: str | None = None,
        filters: Sequence[Filter] = (),
    ) -> None:
        if not isinstance(source, Conversation):
            raise UsageError(
                f"gam remembers conversations, and {source.name} is a document",
                hint="use --memory mindgraph, or give a chat log (JSONL, LoCoMo, ChatGPT export)",
            )
        _check(source)
        self._tools = tools
        self._config = config or GamConfig()
        self._questions = tuple(questions)
        self._source = source
        self._ledger = Ledger(tools.store, source, self._record, tools.observer)
        self._counts: dict[str, int] = {}
        self._indexed: tuple[int, Contexts] | None = None
        self._identity = identity
        private = (private_parts,) if self._config.private == "mask" else ()
        self._filters: tuple[Filter, ...] = (*filters, *private)
        self._filtered: set[int] = set()
        self._writing = asyncio.Lock()

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        return memory_id(
            KIND,
            self._config.model_dump(mode="json"),
            self._tools.llm.model_id,
            writing_prompts(self._config),
            conversation=self._source.id,
        )

    @property
    def state(self) -> State:
        """The state as the log has it now."""
        self._ledger.catch_up()
        return self._ledger.state

    @property
    def conversation(self) -> Conversation:
        """The conversation as the store has it now."""
        self._ledger.catch_up()
        return replace(self._source, turns=tuple(self._ledger.turns))

    # Writing

    async def build(self) -> None:
        """Take in the turns of the source that are not in the log yet, and do what is due."""
        async with self._opened():
            await self._take_in()

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; one that is there already, by id and text, changes nothing.

        Returns once the turn is in the log and what it gives occasion to is done. InputError for a
        turn without text, or with the id of another.
        """
        if not turn.text.strip():
            raise InputError("a turn has no text", hint="leave it out")
        async with self._opened() as ledger:
            await self._take_in()
            while not ledger.holds(turn):
                if ledger.add(turn):
                    await self._settle()
                else:
                    await self._take_in()

    async def flush(self) -> None:
        """The stream has ended: what the buffer holds is consolidated."""
        async with self._opened() as ledger:
            await self._take_in()
            if buffer := ledger.state.buffer:
                await self._look(Look("flush", buffer))

    async def end_session(self) -> None:
        """The session has ended, though no turn of the next one has come yet."""
        async with self._opened() as ledger:
            await self._take_in()
            state = ledger.state
            if state.buffer and state.checked < state.buffer[-1]:
                await self._look(Look("session_end", state.buffer))

    # Reading

    async def read(self, question: Question) -> Reading:
        """The events that may answer a question, the best first."""
        if not question.text.strip():
            raise InputError("the question is empty", hint="say what you want to know")
        async with self._opened() as ledger:
            await self._take_in()
            await self._filter(ledger.state.buffer)
        with ledger.minding():
            return await read(
                self._tools.llm,
                self._tools.required_embedder,
                self._tools.required_reranker,
                ledger.state,
                ledger.turns,
                question,
                self._config,
                self._contexts,
            )

    async def answer(self, question: Question) -> Answer:
        """Answer from what the memory holds, citing turns."""
        reading = await self.read(question)
        with self._ledger.minding():
            return await answer_from_turns(
                self._tools.llm,
                self.conversation,
                memories(reading, self._ledger.state, self._ledger.turns),
                question,
                sampling=self._config.sampling(self._config.answer_tokens),
                trace=(self._judged_by, *trace(reading)),
                ranked=ranked(reading, self._ledger.state),
            )

    async def reply(self, turn: Turn, name: str) -> Answer:
        """Take in what somebody says, reply as ``name``, and take that in, too.

        The last turns are shown as they are; of what was said before, what a reading finds.
        """
        await self.append(turn)
        async with self._opened() as ledger:
            await self._filter(ledger.state.buffer)
            last = ledger.number(turn.id)
            heard = ledger.turns[last]
        question = Question(heard.text, heard.time, heard.speaker or None)
        reading = await self.read(question)
        with ledger.minding():
            state, turns = ledger.state, ledger.turns
            before = [n for n in range(last) if n not in state.forgotten]
            recent = [*before[1 - RECENT :], last]
            events = tuple(event for event in reading.events if event.turn < recent[0])
            reading = replace(reading, events=events)
            said = await reply_to_turn(
                self._tools.llm,
                self.conversation,
                memories(reading, state, turns),
                recent,
                name=name,
                sampling=self._config.sampling(self._config.answer_tokens),
                trace=trace(reading),
            )
        own = Turn(f"{turn.id}+", name, said.text, turn.time, turn.session)
        await self.append(own)
        return said

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The topic network, each topic with the turns it was made of."""
        return viewed(self._ledger.record, self.conversation, self._ledger.state, answers)

    def export(self) -> dict[str, Any]:
        """All that the memory holds, as plain JSON values."""
        talk = self.conversation
        return exported(self.id, talk, self._ledger.state, self._ledger.log)

    # Control

    async def rewrite(self, topic: str, summary: str, keywords: Sequence[str]) -> None:
        """Correct a topic. InputError for one that is not there, or is frozen."""
        async with self._opened() as ledger:
            ledger.change(lambda state: rewriting(state, topic, summary, keywords))

    async def freeze(self, topic: str, frozen: bool = True) -> None:
        """Keep a topic from being rewritten, linked anew or forgotten, or let it go again."""
        async with self._opened() as ledger:
            ledger.change(lambda state: freezing(state, topic, frozen))

    async def unlink(self, one: str, two: str) -> None:
        """Cut the links between two topics. InputError where there is none."""
        async with self._opened() as ledger:
            ledger.change(lambda state: unlinking(state, one, two))

    async def forget(
        self,
        turns: Collection[str] = (),
        topics: Collection[str] = (),
        *,
        branch_of: str | None = None,
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Delete turns (by their ids), topics, a topic with every later one that leads to it, and
        all that was said before a time, with everything that was made of it.

        The words are gone from the store when this returns, for every memory of the conversation;
        topics that keep some turns get another summary with the next turn or build. A ``dry_run``
        deletes nothing and says what would go. InputError for what is not there, and for what is
        named and frozen.
        """
        async with self._opened() as ledger:
            found = chosen(
                ledger.state,
                ledger.turns,
                ids=turns,
                topics=topics,
                branch_of=branch_of,
                before=before,
            )
            if found.turns and not dry_run:
                gone = frozenset(ledger.number(identity) for identity in found.turns)
                ledger.redact(Redaction(gone))
        return found

    @staticmethod
    def treated(
        what: Redaction,
        memory: MemoryRecord,
        step: int,
        log: Sequence[EditRecord],
        turns: Sequence[Turn],
    ) -> Treated:
        """What becomes of the log of such a memory when turns are deleted."""
        del memory
        return treated(what, step, log, turns)

    # Inside

    def _contexts(self) -> Contexts:
        """The turns as the log has them, indexed once a step."""
        ledger = self._ledger
        if self._indexed is None or self._indexed[0] != ledger.step:
            self._indexed = ledger.step, Contexts(ledger.turns, ledger.state.forgotten)
        return self._indexed[1]

    @property
    def _judged_by(self) -> str:
        tools = self._tools
        alike, judged = tools.required_embedder.model_id, tools.required_reranker.model_id
        return f"alike by {alike}, judged by {judged}"

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Ledger]:
        """What is known now, for one who writes."""
        async with self._writing:
            self._ledger.open()
            yield self._ledger

    def _record(self) -> MemoryRecord:
        if self._identity is not None:
            return self._tools.store.memory(self._identity)
        return MemoryRecord(
            id=self.id,
            kind=KIND,
            document_id=self._source.id,
            questions=tuple(question.text for question in self._questions),
            model_id=self._tools.llm.model_id,
            config=self._config.model_dump(mode="json"),
            chunks=0,
            tokens=0,
        )

    async def _take_in(self) -> None:
        """Events for the turns that the conversation has and the log lacks, and all that is due."""
        await self._settle()
        total = len(self._ledger.turns)
        while self._ledger.state.turns < total:
            self._ledger.take_in()
            self._tools.observer.progress("turns", self._ledger.state.turns, total)
            await self._settle()

    async def _settle(self) -> None:
        ledger = self._ledger
        while (topic := self._stale()) is not None:
            with ledger.minding():
                ledger.write(
                    await renewed(self._tools, topic, ledger.turns, self._config, ledger.step)
                )
        while (
            look := await due(ledger.state, ledger.turns, self._config, self._tokens)
        ) is not None:
            await self._look(look)

    async def _look(self, look: Look) -> None:
        await self._filter(look.turns)
        ledger = self._ledger
        kept = set(ledger.state.buffer)
        look = replace(look, turns=tuple(number for number in look.turns if number in kept))
        if not look.turns:
            return
        with ledger.minding():
            state, turns, step = ledger.state, ledger.turns, ledger.step
            before = [n for n in range(look.turns[0]) if n not in state.forgotten]
            where = await cut(self._tools.llm, look, turns, self._config, before=before)
            rows = await consolidate(
                self._tools,
                self._tools.required_embedder,
                state,
                turns,
                look,
                where,
                self._config,
                step,
            )
            ledger.write(rows)

    def _stale(self) -> Topic | None:
        """The first topic that waits for a summary and is not frozen."""
        state = self._ledger.state
        topics = (topic for name, topic in state.topics.items() if name in state.stale)
        return next((topic for topic in topics if not topic.frozen), None)

    async def _filter(self, numbers: Sequence[int]) -> None:
        """Mask what the filters find in turns that they have not seen."""
        fresh = {n: self._ledger.turns[n] for n in numbers if n not in self._filtered}
        if not self._filters or not fresh:
            return
        what = await asyncio.to_thread(filtered, self._filters, fresh)
        self._filtered.update(fresh)
        if what.turns:
            self._ledger.redact(what)

    async def _tokens(self, numbers: Sequence[int]) -> int:
        lines = [self._ledger.turns[number].line for number in numbers]
        missing = [line for line in dict.fromkeys(lines) if line not in self._counts]
        if missing:
            counts = await self._tools.llm.count_tokens(missing)
            self._counts.update(zip(missing, counts, strict=True))
        return sum(self._counts[line] for line in lines)


def _check(conversation: Conversation) -> None:
    """InputError where a turn has no text, or the id of another."""
    check_ids(conversation)
    for turn in conversation.turns:
        if not turn.text.strip():
            raise InputError(f"turn {turn.id!r} has no text", hint="leave it out")
