"""Mnemis as a memory: a conversation or a document, taken in episode by episode.

    memory = Mnemis(tools, conversation)
    await memory.build()
    answer = await memory.answer(Question("Which cities did Dave travel to in 2023?"))

Each episode is a step of the log, and so is each time that the hierarchy is built or taken further:
a process killed at any moment goes on with the next step. The hierarchy follows the base graph at
the end of a build and of a session; with ``routes`` system1 alone, which does not read it, it waits
until another route does.
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
from mgl.memories.mnemis.answering import answer_from_document, as_memories, context, ranked
from mgl.memories.mnemis.building import categorise, take_in, writing_prompts
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.control import Forgotten, chosen
from mgl.memories.mnemis.episodes import shown
from mgl.memories.mnemis.export import exported
from mgl.memories.mnemis.forgetting import DERIVED, after, treated
from mgl.memories.mnemis.log import Log
from mgl.memories.mnemis.losses import as_prompted
from mgl.memories.mnemis.reading import Reading, read, trace
from mgl.memories.mnemis.similarity import Similarity, Texts
from mgl.memories.mnemis.state import State
from mgl.memories.mnemis.view import viewed
from mgl.memories.view import GraphView
from mgl.store import EditRecord, MemoryRecord
from mgl.store.redaction import Redaction, Treated
from mgl.types import Answer, Conversation, Document, Question, Source, Turn

__all__ = ["KIND", "Mnemis"]

KIND = "mnemis"
RECENT = 6  # turns shown as they are


class Mnemis:
    """The memory of one source.

    ``id`` is a hash of all that decides its log, the embedder too where the model is shown the
    candidates that it proposes. Options of reading are no part of it: one build serves all routes.
    ``identity`` stands for it where a memory that is in the store is opened again.
    """

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
        if isinstance(source, Conversation):
            check_ids(source)
        self._tools = tools
        self._source = source
        self._config = config or MnemisConfig()
        self._identity = identity
        self._log = Log(tools.store, self.id, source, tools.observer)
        self._writing = asyncio.Lock()
        self._indexed: tuple[int, State, Texts, Similarity] | None = None

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        decided = {"document": self._source.id}
        if self._config.extraction == "model":
            decided["embedder"] = self._tools.required_embedder.model_id
        config = self._config
        return memory_id(
            KIND, config.of_the_log(), self._tools.llm.model_id, writing_prompts(config), **decided
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

    @property
    def forgotten(self) -> frozenset[int]:
        """The numbers of the turns that were deleted."""
        return self._log.forgotten

    # Writing

    async def build(self) -> None:
        """Take in the episodes that the log lacks, then see to descriptions and hierarchy."""
        async with self._opened() as log:
            await take_in(self._tools, log, self._config, ended=True)
            await categorise(self._tools, log, self._config)

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; one that is there already, by id and text, changes nothing.

        What it completes is ingested before this returns; the hierarchy waits for the session's
        end. InputError for a turn without text, or with the id of another.
        """
        if not turn.text.strip():
            raise InputError("a turn has no text", hint="leave it out")
        async with self._opened() as log:
            while not log.holds(turns := self.conversation.turns, turn):
                log.add(turn, turns)
            await take_in(self._tools, log, self._config, ended=False)

    async def end_session(self) -> None:
        """The session has ended: its last episode is taken in, and the hierarchy seen to."""
        await self.build()

    async def flush(self) -> None:
        """The stream has ended; as ``end_session``."""
        await self.build()

    # Deleting

    async def forget(
        self,
        turns: Collection[str] = (),
        *,
        before: datetime | None = None,
        dry_run: bool = False,
    ) -> Forgotten:
        """Delete turns (by their ids), and all that was said before a time, with everything that
        nothing else supports.

        The words are gone from the store when this returns, for every memory of the conversation.
        What went of descriptions, and the other turns of an episode that lost some, come again
        with the next turn or build. A ``dry_run`` deletes nothing and says what would go.
        InputError for what is not there, or is forgotten already.

        With ``extraction = terms`` every name that a memory of the turns which are left would find
        is found here, too, as long as these alone show that it is one; a noun that was a term for
        having been said twice stays one when it is left but once.
        """
        async with self._opened() as log:
            known, state = self.conversation.turns, log.state
            gone = chosen(known, log.forgotten, ids=turns, before=before)
            what, ids = Redaction(gone), [known[number].id for number in sorted(gone)]
            if dry_run or not gone:
                least = self._config.compression
                made = treated(what, least, log.step, log.log, known)
                return Forgotten.between(ids, state, after([*made.log, *made.step]))
            log.redact(what)
            return Forgotten.between(ids, state, log.state)

    derived: Final = DERIVED
    shown: Final = staticmethod(as_prompted)

    @staticmethod
    def treated(
        what: Redaction,
        memory: MemoryRecord,
        step: int,
        log: Sequence[EditRecord],
        turns: Sequence[Turn],
    ) -> Treated:
        """What becomes of the log of such a memory when turns are deleted."""
        config = MnemisConfig.model_validate(memory.config)
        return treated(what, config.compression, step, log, turns)

    # Reading

    async def read(self, question: Question) -> Reading:
        """What the configured routes find, by kind; all of it is in the state when this returns."""
        if not question.text.strip():
            raise InputError("the question is empty", hint="say what you want to know")
        self._log.open(self._record)
        state, texts, similarity = await self._similarity()
        reading = await read(
            self._tools.llm,
            self._tools.required_reranker,
            similarity,
            texts,
            state,
            question.text,
            self._config,
        )
        return reading.within(self._log.state)

    async def answer(self, question: Question) -> Answer:
        """Answer from what is remembered, citing turns, or passages of a document."""
        await self.build()
        with self._log.minding(self._log.source):
            reading = await self.read(question)
            source, state = self._log.source, self._log.state
            items = context(reading, state, self._shown())
            best = ranked(items, reading)
            told = (self._judged_by, *trace(reading, state))
            if isinstance(source, Document):
                answer = await answer_from_document(
                    self._tools.llm, source, items, question, self._config, told
                )
                places = dict.fromkeys(mention.span.place for mention in best)
                return replace(answer, retrieved=tuple(places), paths=reading.paths)
            answer = await answer_from_turns(
                self._tools.llm,
                source,
                as_memories(items, state),
                question,
                sampling=self._config.sampling(self._config.answer_tokens),
                trace=told,
                ranked=[turn for each in best for turn in state.episodes[each.episode].turns],
            )
            return replace(answer, paths=reading.paths)

    async def reply(self, turn: Turn, name: str) -> Answer:
        """Take in what somebody says, reply as ``name``, and take that in, too.

        What came after the turn is left out of it. One that was replied to has that reply.
        """
        await self.append(turn)
        talk, own = self.conversation, f"{turn.id}+"
        numbers = {each.id: number for number, each in enumerate(talk.turns)}
        last, given = numbers[turn.id], numbers.get(own)
        heard = talk.turns[last]
        if given is not None and given not in self._log.forgotten:
            return Answer(heard.text, talk.turns[given].text, "low", (), ("replied to before",))
        with self._log.minding(talk):
            reading = await self.read(Question(heard.text, heard.time, heard.speaker or None))
            talk, state, forgotten = self.conversation, self._log.state, self._log.forgotten
            before = [number for number in range(last) if number not in forgotten]
            recent = [*before[1 - RECENT :], last]
            reading = reading.until(last, state, shown=recent[0])
            said = await reply_to_turn(
                self._tools.llm,
                talk,
                as_memories(context(reading, state, self._shown()), state),
                recent,
                name=name,
                sampling=self._config.sampling(self._config.answer_tokens),
                trace=trace(reading, state),
            )
        await self.append(Turn(own, name, said.text, turn.time, turn.session))
        return replace(said, paths=reading.paths)

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The categories over the entities, and the facts between these."""
        self._log.catch_up()
        record, log = self._tools.store.memory(self.id), self._log
        return viewed(record, log.source, log.state, log.rows, answers)

    def export(self) -> dict[str, Any]:
        """All that the memory of a conversation holds, as plain JSON values."""
        self._log.catch_up()
        log = self._log
        return exported(self.id, self.conversation, log.forgotten, log.state, log.log)

    # Inside

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Log]:
        """What is known now, for one who writes."""
        async with self._writing:
            self._log.open(self._record)
            yield self._log

    def _record(self) -> MemoryRecord:
        """As the store has it: its options of reading are those that it was begun with."""
        store = self._tools.store
        if self._identity is not None or any(each.id == self.id for each in store.memories()):
            return store.memory(self.id)
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

    def _shown(self) -> dict[int, str]:
        source = self._log.source
        return {n: shown(source, episode) for n, episode in self._log.state.episodes.items()}

    def _speakers(self) -> dict[int, str]:
        source = self._log.source
        if isinstance(source, Document):
            return {}
        said = {
            number: {source.turns[turn].speaker for turn in episode.turns}
            for number, episode in self._log.state.episodes.items()
        }
        return {number: min(own) for number, own in said.items() if len(own) == 1}

    async def _similarity(self) -> tuple[State, Texts, Similarity]:
        """The state with the index of it, which is made once a step."""
        indexed = self._indexed
        if indexed is None or indexed[0] != self._log.step:
            step, state = self._log.step, self._log.state
            texts = Texts.of(state, self._shown(), self._speakers())
            opened = await Similarity.open(self._tools.required_embedder, texts)
            self._indexed = indexed = step, state, texts, opened
        return indexed[1:]

    @property
    def _judged_by(self) -> str:
        tools = self._tools
        alike, judged = tools.required_embedder.model_id, tools.required_reranker.model_id
        return f"alike by {alike}, judged by {judged}"
