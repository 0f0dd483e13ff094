"""Mnemis as a memory: a conversation or a document, taken in episode by episode.

    memory = Mnemis(tools, conversation)
    await memory.build()
    answer = await memory.answer(Question("Which cities did Dave travel to in 2023?"))

Each episode is a step of the log, and so is each pass over the hierarchy: a process that is killed
at any moment resumes with the next step. Asking writes nothing. The hierarchy follows the base
graph at the end of a build and of a session, and with the first turn of another session where too
many entities are outside it (``drift``). What no question reads waits for one that does: the
hierarchy with ``routes`` system1, the whole graph where ``kinds`` is rag besides.

An episode of which a reply could not be used is read again by the next builds, and so is a
hierarchy of which no reply could be, ``MOST_FAILURES`` times; ``retry_failed`` tries once more.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from mgl.errors import InputError
from mgl.llm.base import Sampling
from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.drawing import draw_graph
from mgl.memories.mnemis.edits import (
    VOCABULARY,
    AddEpisode,
    Describe,
    Edit,
    MarkEpisode,
    turns_below,
)
from mgl.memories.mnemis.episodes import find_fresh
from mgl.memories.mnemis.forgetting import MnemisRedactor
from mgl.memories.mnemis.hierarchy import (
    count_stale_calls,
    describe_stale,
    needs_rebuild,
    renew_hierarchy,
)
from mgl.memories.mnemis.index import Index
from mgl.memories.mnemis.ingest import Intake, ModelIntake
from mgl.memories.mnemis.prompts import ANSWER, CHOICE_ANSWER, writing_prompts
from mgl.memories.mnemis.retrieval import Item, Reading, find
from mgl.memories.mnemis.small.terms import TermIntake
from mgl.memories.mnemis.state import Entity, Episode, State
from mgl.memories.talk import Recall, TalkMemory
from mgl.memories.turns import answer_from_lines, show_turns
from mgl.memories.view import GraphView
from mgl.prompt import Prompt
from mgl.store.deletion import Fate, Gone
from mgl.types import Answer, Citation, Document, Question, Source, Turn

MOST_FAILURES = 2
UNREAD = "episodes_unread"
"""The mark of an answer where some episodes were not read whole."""

NOTHING = "The document says nothing about this."


class Mnemis(TalkMemory[MnemisConfig, Edit, State]):
    """Searches by similarity and selects down a hierarchy of categories.

    Options of reading are no part of its id: one build serves all routes. The embedder is, where
    the model is shown the candidates that it proposes.
    """

    kind = "mnemis"
    reads = "either"
    retrieves = True
    Config = MnemisConfig
    vocabulary = VOCABULARY

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
        super().__init__(tools, source, (), config, identity=identity)
        self._intake: tuple[dict[int, Fate], Intake] | None = None
        self._index: tuple[dict[int, Fate], Index] | None = None

    def _recorded_config(self) -> dict[str, Any]:
        return self._config.writing_options()

    def _writing_prompts(self) -> Sequence[Prompt]:
        return writing_prompts(self._config)

    def _scope(self) -> dict[str, Any]:
        scope = {"document": self._source.id}
        if self._config.extraction == "model":
            scope["embedder"] = self._tools.required_embedder.model_id
        return scope

    def _sampling(self) -> Sampling:
        return self._config.sampling(self._config.answer_tokens)

    # Writing

    async def append(self, turn: Turn) -> None:
        """Take in the next turn; with the first of a session, see to the hierarchy."""
        await super().append(turn)
        async with self._writer() as log:
            last = len(log.turns) - 1
            is_new = last > 0 and log.turns[last].session != log.turns[last - 1].session
            while is_new and log.number(turn.id) == last and self._has_drifted():
                await self._renew_hierarchy()

    async def retry_failed(self) -> None:
        """Build, then read again what could not be read whole, however often that failed."""
        await self.build()
        async with self._writer():
            await self._read_unread(sys.maxsize)
            while not await self._renew_hierarchy(is_retried=True):
                pass

    async def _settle(self, *, ended: bool) -> None:
        """Take in the episodes that are complete; at the end see to all that is due."""
        if ended:
            await self._read_unread(0)
        while not await self._take_in(ended=ended):
            pass
        if ended:
            await self._read_unread(MOST_FAILURES)
        while not await self._renew_descriptions():
            pass
        while ended and not await self._renew_hierarchy():
            pass

    async def _take_in(self, *, ended: bool) -> bool:
        """Take in new episodes; False if the log grew by other steps, and must be looked at again.

        With ``ended`` a session is an episode though no other has begun.
        """
        log, config = self._log, self._config
        state, count = log.state, self._tools.llm.count_tokens
        fresh = await find_fresh(
            log.source, state, config, count, ended=ended, forgotten=log.forgotten
        )
        return await self._read_all([*state.episodes.last(config.recent), *fresh], fresh)

    async def _read_unread(self, most: int) -> None:
        """Read the episodes whose reading failed ``most`` times or less, each once."""
        if self._config.reads_graph and (unread := self._log.state.find_unread(most)):
            episodes = list(self._log.state.episodes.values())
            due = [each for each in episodes if each.number in unread]
            await self._read_all(episodes, due, unread)

    async def _read_all(
        self,
        episodes: Sequence[Episode],
        fresh: Sequence[Episode],
        failures: Mapping[int, int] = MappingProxyType({}),
    ) -> bool:
        """Read ``fresh`` ones of the episodes, a step each; False as ``_take_in``.

        Where no question reads the graph, they are only put into the log.
        """
        log, tools, step = self._log, self._tools, self._log.step
        known = len(log.state.episodes) - len(failures)
        total = known + len(fresh)
        tools.observer.progress("episodes", known, total)
        intake = self._open_intake()
        with log.showing():
            async with intake.over(log.source, episodes, fresh, failures) as read:
                for done, episode in enumerate(fresh, known + 1):
                    if log.step != step:
                        return False
                    draft, number = log.draft(), episode.number
                    if number not in draft.state.episodes:
                        draft.put(AddEpisode(episode))
                    if not self._config.reads_graph:
                        draft.put(MarkEpisode(number, 0))
                    elif not await read(draft, episode):
                        draft.put(MarkEpisode(number, failures.get(number, 0) + 1))
                    elif number in failures:
                        draft.put(MarkEpisode(number, None))
                    if not log.write(draft):
                        return False
                    step += 1
                    tools.observer.progress("episodes", done, total)
        return True

    def _open_intake(self) -> Intake:
        """Return what reads episodes; made anew after a deletion."""
        fates = self._log.fates
        if self._intake is None or self._intake[0] != fates:
            is_model = self._config.extraction == "model"
            intake = ModelIntake(self._tools, self._config) if is_model else TermIntake()
            self._intake = dict(fates), intake
        return self._intake[1]

    async def _renew_descriptions(self) -> bool:
        """Describe again what lost its description to a deletion; False as ``_take_in``.

        What cannot be described keeps what is said of it.
        """
        log = self._log
        if not log.state.stale:
            return True
        with log.showing():
            draft = log.draft()
            await self._open_intake().describe(log.source, draft, _stale_entities(log.state))
            await describe_stale(self._tools, draft, self._config)
            for identity in sorted(draft.state.stale):
                node = draft.state.node(identity)
                draft.put(Describe(identity, node.summary, node.tags))
            return log.write(draft)

    async def _renew_hierarchy(self, *, is_retried: bool = False) -> bool:
        """Let the hierarchy follow the entities, if a route reads it; False as ``_take_in``.

        One that failed is built again, ``MOST_FAILURES`` times.
        """
        log, state = self._log, self._log.state
        failed = 0 < state.failed_builds <= (sys.maxsize if is_retried else MOST_FAILURES)
        is_due = len(state.entities) != state.categorised or failed
        if self._config.routes == "system1" or not is_due:
            return True
        with log.showing():
            draft = log.draft()
            await renew_hierarchy(self._tools, draft, self._config)
            return log.write(draft)

    def _has_drifted(self) -> bool:
        """Whether too many entities are outside the hierarchy, or it is one that follows them."""
        state, config = self._log.state, self._config
        if config.routes == "system1" or len(state.entities) == state.categorised:
            return False
        return config.hierarchy == "incremental" or needs_rebuild(state, config)

    # Deleting

    @classmethod
    def redactor(cls, config: Mapping[str, Any], gone: Gone, before: State) -> MnemisRedactor:
        return MnemisRedactor(gone, before, MnemisConfig.model_validate(config).compression)

    def _nodes(self, state: State) -> Collection[str]:
        return [*state.entities, *state.facts]

    def _stale(self, state: State) -> Collection[str]:
        return state.stale

    def _count_renewals(self, state: State) -> int:
        calls = self._open_intake().count_calls(_stale_entities(state))
        return calls + count_stale_calls(state, self._config)

    # Reading

    async def read(self, question: Question) -> Reading:
        """Find what the configured routes give; all of it is in the state when this returns."""
        if not question.text.strip():
            raise InputError("the question is empty", hint="say what you want to know")
        self._log.open(self._record)
        index, source = await self._update_index(), self._log.source
        reading = await find(self._tools, index, source, question.text, self._config)
        return reading.within(self._log.state)

    async def recall(self, question: Question, *, recent: Sequence[int] = ()) -> Recall:
        """Find facts, entities and episodes; they stand on the turns that mention them."""
        reading = await self.read(question)
        log, state = self._log, self._log.state
        if recent:
            reading = reading.until(recent[-1], state, shown=recent[0])
        items = self._list_items(reading, log.source)
        waiting = () if recent else self._find_waiting()
        categories = (item.id for item in items if item.id in state.categories)
        return Recall(
            [
                *((item.turns(state), item.text) for item in items),
                *show_turns(log.turns, waiting),
            ],
            [
                *(
                    turn
                    for mention in reading.rank_mentions(items)
                    for turn in state.episodes[mention.episode].turns
                ),
                *waiting,
            ],
            (*reading.trace(state), *self._trace_unread()),
            reading.paths,
            frozenset(turns_below(state, *categories)),
        )

    def _find_waiting(self) -> Sequence[int]:
        """Return the last turns that are in no episode yet: the session goes on."""
        log = self._log
        first, last = log.state.lookups.next_turn, len(log.turns)
        numbers = (n for n in range(first, last) if n not in log.forgotten)
        waiting = [n for n in numbers if log.turns[n].text.strip()]
        return waiting[-self._config.k :]

    def _list_items(self, reading: Reading, source: Source) -> list[Item]:
        is_judged = self._config.extraction == "model"
        return reading.items(self._log.state, source, ends_known=is_judged)

    def _trace_unread(self) -> tuple[str, ...]:
        count = len(self._log.state.find_unread(sys.maxsize)) if self._config.reads_graph else 0
        return (f"{count} episodes were not read whole: build again",) if count else ()

    async def answer(self, question: Question) -> Answer:
        """Answer from what is remembered, citing turns, or passages of a document.

        A source of which nothing was taken in yet is built first.
        """
        if not self.state.episodes:
            await self.build()
        source = self._source
        if isinstance(source, Document):
            answer = await self._answer_from(source, question)
        else:
            answer = await super().answer(question)
        return replace(answer, marks=(UNREAD,)) if self._trace_unread() else answer

    async def _answer_from(self, document: Document, question: Question) -> Answer:
        reading = await self.read(question)
        state = self._log.state
        items = self._list_items(reading, document)
        answer = Answer(question.text, NOTHING, "low", ())
        if items or question.options:
            answer = await answer_from_lines(
                self._tools.llm,
                [(item.text, [_cite(document, item)] if item.mentions else ()) for item in items],
                question,
                CHOICE_ANSWER if question.options else ANSWER,
                self._sampling(),
            )
        places = dict.fromkeys(mention.span.place for mention in reading.rank_mentions(items))
        trace = (self._judged_by, *reading.trace(state), *self._trace_unread())
        return replace(answer, trace=trace, retrieved=tuple(places), paths=reading.paths)

    async def _update_index(self) -> Index:
        """Return the index, grown to the state; made anew after a deletion."""
        log, tools = self._log, self._tools
        async with self._indexing:
            while True:
                if self._index is None or self._index[0] != log.fates:
                    is_ranked = self._config.ranking == "context"
                    made = Index(
                        tools.required_embedder, tools.store, self.id, in_context=is_ranked
                    )
                    self._index = dict(log.fates), made
                fates, index = self._index
                await asyncio.to_thread(index.update, log.state, log.source)
                log.catch_up()
                if fates == log.fates:
                    return index
                tools.store.drop_indexes(f"{self.id}/")  # it may have stored what was deleted

    @cached_property
    def _indexing(self) -> asyncio.Lock:
        return asyncio.Lock()

    def export(self) -> dict[str, Any]:
        """All that the memory holds, as plain JSON values; of what was deleted, that it was."""
        exported = super().export()
        del exported["kept"]
        return exported

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The categories over the entities, and the facts between these."""
        rows = self._log.rows
        nodes, edges = draw_graph(self.state, rows)
        length = max((row.chunk + 1 for row in rows), default=0)
        return self._view(nodes, edges, steps=length, answers=answers)


def _stale_entities(state: State) -> list[Entity]:
    return [entity for entity in state.entities.values() if entity.id in state.stale]


def _cite(document: Document, item: Item) -> Citation:
    span = item.mentions[0].span
    return Citation(
        node_id=item.id,
        document=document.name,
        span=span,
        quote=document.quote(span),
        section=document.section_at(span.start),
    )
