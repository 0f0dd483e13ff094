"""Mnemis as a memory: a conversation or a document, taken in episode by episode.

    memory = Mnemis(tools, conversation)
    await memory.build()
    answer = await memory.answer(Question("Which cities did Dave travel to in 2023?"))

Each episode is a step of the log, and so is each time that the hierarchy is built or taken further:
a process killed at any moment goes on with the next step. The hierarchy follows the base graph at
the end of a build and of a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from mgl.errors import InputError, UsageError
from mgl.memories.base import Tools, memory_id
from mgl.memories.mnemis.answering import answer_from_document, as_memories, context
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.episodes import episodes_of, shown
from mgl.memories.mnemis.hierarchy import build_hierarchy
from mgl.memories.mnemis.ingest import ingest
from mgl.memories.mnemis.log import Log, holds
from mgl.memories.mnemis.reading import Reading, read, trace
from mgl.memories.mnemis.similarity import Similarity, Texts
from mgl.memories.mnemis.state import State
from mgl.memories.mnemis.update import needs_rebuild, update_hierarchy
from mgl.memories.mnemis.view import viewed
from mgl.replying import reply_from, reply_in_talk
from mgl.store import EditRecord, MemoryRecord
from mgl.types import Answer, Conversation, Document, Question, Source, Turn
from mgl.web.view import GraphView

__all__ = ["KIND", "Mnemis"]

KIND = "mnemis"
RECENT = 6  # turns shown as they are


class Mnemis:
    """The memory of one source. ``id`` is a hash of all that decides its log; ``identity`` stands
    for it where a memory that is in the store is opened again."""

    reads: Final = "either"
    retrieves: Final = True
    per_question: Final = False
    question_aware: Final = False
    Config = MnemisConfig

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: MnemisConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        del questions  # it is built for whatever may be asked
        self._tools = tools
        self._source = source
        self._config = config or MnemisConfig()
        self._identity = identity
        self._log = Log(tools.store, self.id, source, tools.observer)
        self._indexed: tuple[int, Texts, Similarity] | None = None

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        return memory_id(
            KIND,
            self._config.model_dump(mode="json"),
            self._tools.llm.model_id,
            document=self._source.id,
        )

    @property
    def state(self) -> State:
        """The state as the log has it now."""
        self._log.catch_up()
        return self._log.state

    @property
    def conversation(self) -> Conversation:
        """The conversation as the store has it now. UsageError over a document."""
        source = self._log.source
        if isinstance(source, Conversation):
            return source
        raise UsageError("this memory is of a document", hint="ask it, or look at it")

    # Writing

    async def build(self) -> None:
        """Take in the episodes that the log lacks, then see to the hierarchy."""
        self._open()
        await self._take_in(ended=True)
        await self._categorise()

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; one that is there already, by id and text, changes nothing.

        What it completes is ingested before this returns; the hierarchy waits for the session's
        end. InputError for a turn without text, or with the id of another.
        """
        if not turn.text.strip():
            raise InputError("a turn has no text", hint="leave it out")
        log = self._open()
        while not holds(turns := self.conversation.turns, turn):
            log.add(turn, turns)
        await self._take_in(ended=False)

    async def end_session(self) -> None:
        """The session has ended: its last episode is taken in, and the hierarchy seen to."""
        await self.build()

    async def flush(self) -> None:
        """The stream has ended; as ``end_session``."""
        await self.build()

    # Reading

    async def read(self, question: Question) -> Reading:
        """What the configured routes find, by kind."""
        if not question.text.strip():
            raise InputError("the question is empty", hint="say what you want to know")
        self._open()
        texts, similarity = await self._similarity()
        return await read(
            self._tools.llm,
            self._tools.required_reranker,
            similarity,
            texts,
            self._log.state,
            question.text,
            self._config,
        )

    async def answer(self, question: Question) -> Answer:
        """Answer from what is remembered, citing turns, or passages of a document."""
        await self.build()
        reading = await self.read(question)
        items = context(reading, self._log.state, self._shown())
        told = (self._judged_by, *trace(reading, self._log.state))
        source = self._log.source
        if isinstance(source, Document):
            answer = await answer_from_document(
                self._tools.llm, source, items, question, self._config, told
            )
        else:
            answer = await reply_from(
                self._tools.llm,
                source,
                as_memories(items, self._log.state),
                question,
                sampling=self._config.sampling(self._config.answer_tokens),
                trace=told,
            )
        return replace(answer, paths=reading.paths)

    async def reply(self, turn: Turn, name: str) -> Answer:
        """Take in what somebody says, reply as ``name``, and take that in, too."""
        await self.append(turn)
        reading = await self.read(Question(turn.text, turn.time, turn.speaker or None))
        turns = self.conversation.turns
        recent = list(range(max(0, len(turns) - RECENT), len(turns)))
        earlier = tuple(
            str(number)
            for number in reading.episodes
            if self._log.state.episodes[number].turns[-1] < recent[0]
        )
        reading = replace(reading, found={**reading.found, "episodes": earlier})
        items = context(reading, self._log.state, self._shown())
        said = await reply_in_talk(
            self._tools.llm,
            self.conversation,
            as_memories(items, self._log.state),
            recent,
            name=name,
            sampling=self._config.sampling(self._config.answer_tokens),
            trace=trace(reading, self._log.state),
        )
        await self.append(Turn(f"{turn.id}+", name, said.text, turn.time, turn.session))
        return replace(said, paths=reading.paths)

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The categories over the entities, and the facts between these."""
        self._log.catch_up()
        record, log = self._tools.store.memory(self.id), self._log
        return viewed(record, log.source, log.state, log.rows, answers)

    # Inside

    def _open(self) -> Log:
        """What is known now, for one who writes."""
        self._log.open(self._record)
        return self._log

    def _record(self) -> MemoryRecord:
        if self._identity is not None:
            return self._tools.store.memory(self._identity)
        return MemoryRecord(
            id=self.id,
            kind=KIND,
            document_id=self._source.id,
            questions=(),
            model_id=self._tools.llm.model_id,
            config=self._config.model_dump(mode="json"),
            chunks=0,
            tokens=0,
        )

    async def _take_in(self, *, ended: bool) -> None:
        """Ingest the episodes that are complete; with ``ended`` the last is."""
        llm, source = self._tools.llm, self._log.source
        episodes = await episodes_of(
            source,
            self._config,
            llm.count_tokens,
            known=tuple(self._log.state.episodes.values()),
            ended=ended,
        )
        self._tools.observer.progress("episodes", len(self._log.state.episodes), len(episodes))
        for episode in episodes:
            while episode.number not in self._log.state.episodes:
                rows, _ = await ingest(
                    llm,
                    self._tools.required_embedder,
                    source,
                    self._log.state,
                    episode,
                    self._config,
                    step=self._log.step,
                )
                self._log.write(rows)
            self._tools.observer.progress("episodes", episode.number + 1, len(episodes))

    async def _categorise(self) -> None:
        """Build the hierarchy, or take it further, where entities came since the last time."""
        state, last = self._log.state, self._log.categorised
        if len(state.entities) == last:
            return
        again = self._config.hierarchy == "rebuild" or not state.categories
        stopped = "updated"
        if again or needs_rebuild(state, self._config):
            rows, made, stopped = await build_hierarchy(
                self._tools.llm, state, self._config, step=self._log.step
            )
        else:
            rows, made = await update_hierarchy(
                self._tools.llm, state, self._config, step=self._log.step
            )
        told = {"stopped": stopped, "entities": len(made.entities), "layers": made.top}
        self._log.write([*rows, EditRecord(self._log.step, "hierarchy", told, "applied")])

    def _shown(self) -> dict[int, str]:
        source = self._log.source
        return {n: shown(source, episode) for n, episode in self._log.state.episodes.items()}

    async def _similarity(self) -> tuple[Texts, Similarity]:
        if self._indexed is None or self._indexed[0] != self._log.step:
            texts = Texts.of(self._log.state, self._shown())
            self._indexed = (
                self._log.step,
                texts,
                await Similarity.open(self._tools.required_embedder, texts),
            )
        return self._indexed[1:]

    @property
    def _judged_by(self) -> str:
        tools = self._tools
        alike, judged = tools.required_embedder.model_id, tools.required_reranker.model_id
        return f"alike by {alike}, judged by {judged}"
