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
from collections.abc import Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Final, TypeVar

from mgl.errors import InputError, StoreConflict, UsageError
from mgl.llm.base import Sampling
from mgl.llm.calls import content_hash
from mgl.memories.base import Tools
from mgl.memories.gam.boundaries import Look, cut, due
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.consolidate import consolidate
from mgl.memories.gam.edits import record, resolved
from mgl.memories.gam.reading import Reading, memories, read, trace
from mgl.memories.gam.state import EMPTY, Append, Forget, State, apply
from mgl.replying import reply_from, reply_in_talk
from mgl.retrieval.base import Embedder, Reranker
from mgl.store import EditRecord, MemoryRecord
from mgl.types import Answer, Conversation, Question, Source, Turn
from mgl.web.view import GraphView, ViewEdge, ViewNode

__all__ = ["KIND", "Gam"]

KIND = "gam"
LABEL_CHARACTERS = 40
RECENT = 6  # turns shown as they are
ToolT = TypeVar("ToolT")


class Gam:
    """The memory of one conversation.

    ``id`` is a hash of all that decides its log; a conversation that grows keeps it. ``identity``
    stands for it where a memory that is there is gone on with by another model.
    """

    reads: Final = "conversation"
    retrieves: Final = True
    Config = GamConfig

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: GamConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        if not isinstance(source, Conversation):
            raise UsageError(
                f"gam remembers conversations, and {source.name} is a document",
                hint="use --memory mindgraph, or give a chat log (JSONL, LoCoMo, ChatGPT export)",
            )
        self._tools = tools
        self._config = config or GamConfig()
        self._questions = tuple(questions)
        self._source = source
        self._turns: list[Turn] = []
        self._numbers: dict[str, int] = {}
        self._state, self._step = EMPTY, 0
        self._counts: dict[int, int] = {}
        self._identity = identity
        self._writing = asyncio.Lock()

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        return content_hash(
            {
                "kind": KIND,
                "conversation": self._source.id,
                "config": self._config.model_dump(mode="json"),
                "model": self._tools.llm.model_id,
            }
        )[:12]

    @property
    def state(self) -> State:
        """The state as the log has it now."""
        self._catch_up()
        return self._state

    @property
    def conversation(self) -> Conversation:
        """The conversation as the store has it now."""
        self._catch_up()
        return replace(self._source, turns=tuple(self._turns))

    # Writing

    async def build(self) -> None:
        """Take in the turns of the source that are not in the log yet, and do what is due."""
        async with self._writing:
            self._register()
            await self._take_in()

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; one that is there already, by id and text, changes nothing.

        Returns once the turn is in the log and what it gives occasion to is done. InputError for a
        turn without text, or with the id of another.
        """
        if not turn.text.strip():
            raise InputError("a turn has no text", hint="leave it out")
        async with self._writing:
            self._register()
            await self._take_in()
            while not self._is_in(turn):
                number = len(self._turns)
                edit = record(self._step, Append(number))
                try:
                    self._tools.store.append_turn(self._source.id, number, turn, self.id, edit)
                except StoreConflict:
                    self._catch_up()
                    await self._take_in()
                    continue
                self._catch_up()
                await self._settle()

    async def flush(self) -> None:
        """The stream has ended: what the buffer holds is consolidated."""
        async with self._writing:
            self._register()
            await self._take_in()
            if self._state.buffer:
                await self._look(Look("flush", self._state.buffer))

    async def end_session(self) -> None:
        """The session has ended, though no turn of the next one has come yet."""
        async with self._writing:
            self._register()
            await self._take_in()
            if self._state.buffer and self._state.checked < self._state.turns - 1:
                await self._look(Look("session_end", self._state.buffer))

    # Reading

    async def read(self, question: Question) -> Reading:
        """The events that may answer a question, the best first."""
        if not question.text.strip():
            raise InputError("the question is empty", hint="say what you want to know")
        await self.build()
        return await read(
            self._tools.llm,
            self._embedder,
            self._reranker,
            self._state,
            self._turns,
            question,
            self._config,
        )

    async def answer(self, question: Question) -> Answer:
        """Answer from what the memory holds, citing turns."""
        reading = await self.read(question)
        return await reply_from(
            self._tools.llm,
            self.conversation,
            memories(reading, self._state, self._turns),
            question,
            sampling=self._sampling,
            trace=(self._judged_by, *trace(reading)),
        )

    async def reply(self, turn: Turn, name: str) -> Answer:
        """Take in what somebody says, reply as ``name``, and take that in, too.

        The last turns are shown as they are; of what was said before, what a reading finds.
        """
        await self.append(turn)
        question = Question(turn.text, turn.time, turn.speaker or None)
        reading = await self.read(question)
        recent = list(range(max(0, len(self._turns) - RECENT), len(self._turns)))
        events = tuple(event for event in reading.events if event.turn < recent[0])
        reading = replace(reading, events=events)
        said = await reply_in_talk(
            self._tools.llm,
            self.conversation,
            memories(reading, self._state, self._turns),
            recent,
            name=name,
            sampling=self._sampling,
            trace=trace(reading),
        )
        own = Turn(f"{turn.id}+", name, said.text, turn.time, turn.session)
        await self.append(own)
        return said

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The topic network, each topic with the turns it was made of."""
        state, talk = self.state, self.conversation
        spans = {
            name: talk.transcript.span(
                talk.span(topic.turns[0]).start, talk.span(topic.turns[-1]).end
            )
            for name, topic in state.topics.items()
        }
        steps = {name: topic.turns[-1] for name, topic in state.topics.items()}
        return GraphView(
            memory_id=self.id,
            memory=KIND,
            model=self._tools.llm.model_id,
            document=talk.transcript,
            questions=tuple(question.text for question in self._questions),
            steps=len(talk.turns),
            nodes=tuple(
                ViewNode(
                    name,
                    "topic",
                    shorten(", ".join(topic.keywords) or name, LABEL_CHARACTERS, placeholder="…"),
                    topic.summary,
                    spans[name],
                    steps[name],
                )
                for name, topic in state.topics.items()
            ),
            edges=tuple(
                ViewEdge(
                    f"e{place}",
                    link.source,
                    link.target,
                    link.relation,
                    spans[link.source],
                    steps[link.source],
                )
                for place, link in enumerate(state.links, 1)
            ),
            answers=tuple(answers),
        )

    # Inside

    @property
    def _judged_by(self) -> str:
        return f"alike by {self._embedder.model_id}, judged by {self._reranker.model_id}"

    @property
    def _sampling(self) -> Sampling:
        config = self._config
        return Sampling(config.temperature, max_tokens=config.answer_tokens, seed=config.seed)

    @property
    def _embedder(self) -> Embedder:
        return _required(self._tools.embedder, "an embedding model")

    @property
    def _reranker(self) -> Reranker:
        return _required(self._tools.reranker, "a reranker")

    def _register(self) -> None:
        store = self._tools.store
        if self._step == 0:
            store.put_conversation(self._source)
            if store.steps(self.id) == 0:
                store.put_memory(
                    MemoryRecord(
                        id=self.id,
                        kind=KIND,
                        document_id=self._source.id,
                        questions=tuple(question.text for question in self._questions),
                        model_id=self._tools.llm.model_id,
                        config=self._config.model_dump(mode="json"),
                        chunks=0,
                        tokens=0,
                    )
                )
        self._catch_up()

    def _catch_up(self) -> None:
        """Apply what is in the log and not in the state: by another process, or by the last one."""
        store = self._tools.store
        if (steps := store.steps(self.id)) > self._step:
            edits = [resolved(row) for row in store.edits(self.id, since=self._step)]
            for edit in edits:
                if edit is not None:
                    self._state = apply(self._state, edit)
            self._step = steps
            if any(isinstance(edit, Forget) for edit in edits):
                self._turns.clear()
        for turn in store.turns(self._source.id, since=len(self._turns)):
            self._numbers[turn.id] = len(self._turns)
            self._turns.append(turn)

    def _is_in(self, turn: Turn) -> bool:
        number = self._numbers.get(turn.id)
        if number is None:
            return False
        if self._turns[number] != turn and number not in self._state.forgotten:
            raise InputError(
                f"the conversation has another turn with the id {turn.id!r}",
                hint="give each turn an id of its own",
            )
        return True

    async def _take_in(self) -> None:
        """Events for the turns that the conversation has and the log lacks, and all that is due."""
        await self._settle()
        total = len(self._turns)
        while self._state.turns < total:
            number = self._state.turns
            self._write([record(self._step, Append(number))])
            self._tools.observer.progress("turns", self._state.turns, total)
            await self._settle()

    async def _settle(self) -> None:
        while (look := await due(self._state, self._turns, self._config, self._tokens)) is not None:
            await self._look(look)

    async def _look(self, look: Look) -> None:
        turns = self._turns
        gone = self._state.forgotten
        before = [number for number in range(look.turns[0]) if number not in gone]
        where = await cut(self._tools.llm, look, turns, self._config, before=before)
        rows, _ = await consolidate(
            self._tools, self._embedder, self._state, turns, look, where, self._config, self._step
        )
        self._write(rows)

    def _write(self, rows: Sequence[EditRecord]) -> None:
        """Append one step. Where another process has written it, its step is taken instead."""
        try:
            self._tools.store.append_edits(self.id, self._step, rows)
        except StoreConflict:
            self._tools.observer.note("another process writes to this memory: reading its log")
        self._catch_up()

    async def _tokens(self, numbers: Sequence[int]) -> int:
        missing = [number for number in numbers if number not in self._counts]
        if missing:
            lines = [self._turns[number].line for number in missing]
            counts = await self._tools.llm.count_tokens(lines)
            self._counts.update(zip(missing, counts, strict=True))
        return sum(self._counts[number] for number in numbers)


def _required(tool: ToolT | None, what: str) -> ToolT:
    if tool is None:
        raise UsageError(
            f"gam needs {what}", hint="install the extra [retrieval], or name one of your own"
        )
    return tool
