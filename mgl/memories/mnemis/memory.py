"""Mnemis as a memory: a conversation, taken in turn by turn.

    memory = Mnemis(tools, conversation)
    await memory.build()
    answer = await memory.answer(Question("Which cities did Dave travel to in 2023?"))

Each episode is a step of the log, and so is each pass over the hierarchy: a process that is killed
at any moment resumes with the next step. Asking writes nothing. The hierarchy follows the base
graph at the end of a build and of a session, and with the first turn of another session where too
many entities are outside it. What no question reads waits for one that does: the hierarchy with
``routes`` system1, the whole graph where ``kinds`` is rag besides.

The next builds retry an episode if one of its replies was unusable, and a hierarchy if all of its
replies were, ``MOST_FAILURES`` times; ``retry_failed`` tries once more.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Final

from mgl.llm.calls import note_made_of
from mgl.memories.base import check_question
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import (
    VOCABULARY,
    AddEntity,
    AddEpisode,
    AddFact,
    Assign,
    Describe,
    Edit,
    EditDraft,
    MarkEpisode,
    PutCategory,
    Restore,
    turns_below,
)
from mgl.memories.mnemis.entities import (
    DESCRIBING,
    describe_entities,
    find_names,
    match_names,
    merge_entities,
)
from mgl.memories.mnemis.facts import find_facts, match_facts
from mgl.memories.mnemis.forgetting import MnemisRedactor
from mgl.memories.mnemis.grouping import BY_MODEL, Grouping
from mgl.memories.mnemis.hierarchy import HierarchyBuilder, needs_rebuild
from mgl.memories.mnemis.index import Index
from mgl.memories.mnemis.prompts import writing_prompts
from mgl.memories.mnemis.reading import EpisodeReader, find_fresh, in_batches
from mgl.memories.mnemis.retrieval import RetrievedNodes, find
from mgl.memories.mnemis.selection import ask_printed
from mgl.memories.mnemis.state import Category, Entity, Episode, MnemisState
from mgl.memories.talk import Change, Recall, TalkMemory, refuse_topics
from mgl.memories.turns import show_turns
from mgl.memories.view import GraphView, MemorySize, ViewEdge, ViewNode
from mgl.prompt import Prompt
from mgl.retrieval.ranking import best
from mgl.store import EditRecord
from mgl.types import Answer, Conversation, Question, Span

MOST_FAILURES: Final = 2
UNREAD: Final = "episodes_unread"
"""The mark of an answer where some episodes were not read whole."""

WAITING: Final = 100
FRESH: Final = 6
"""Turns that wait for an episode: how many are looked at, the last ones, and how many are shown."""

LAST: Final = 6
"""Episodes that an entity is described from again."""


class Mnemis(TalkMemory[MnemisConfig, Edit, MnemisState]):
    """Searches by similarity and selects down a hierarchy of categories.

    Options of reading are no part of its id: one build serves all routes. The embedder is, where
    the model is shown the candidates that it proposes.
    """

    kind = "mnemis"
    retrieves = True
    in_context: ClassVar[bool] = False
    """Whether episodes are ranked by what stands around them, as plain turns are."""
    is_understood: ClassVar[bool] = True
    """Whether a model has read all episodes: it sees where facts end, and describes an entity by
    all that is said of it."""
    grouping: ClassVar[Grouping] = BY_MODEL
    """How nodes are put into categories."""
    ask_nodes = staticmethod(ask_printed)
    """How System-2 asks which nodes could help."""
    Config: ClassVar[type[MnemisConfig]] = MnemisConfig
    vocabulary = VOCABULARY
    Redactor = MnemisRedactor

    _indexes: tuple[tuple[int, int], Index] | None = None

    @property
    def _hierarchy(self) -> HierarchyBuilder:
        return HierarchyBuilder(self._tools, self._config, self.grouping)

    def _writing_prompts(self) -> Sequence[Prompt]:
        return writing_prompts(self._config)

    def _scope(self) -> dict[str, Any]:
        embedder = self._tools.required_embedder.model_id
        return {"document": self._source.id, "embedder": embedder}

    # Writing

    async def retry_failed(self) -> None:
        """Build, then read again what could not be read whole, however often that failed."""
        await self.build()
        async with self._writer():
            await self._read_unread(sys.maxsize)
            while not await self._renew_hierarchy(is_retried=True):
                pass

    async def _settle(self, *, ended: bool) -> None:
        """Take in the episodes that are new, read again those that failed, and see to what a
        deletion left; at the end, and where a session has ended, see to the hierarchy."""
        await self._read_unread(0)
        while not await self._take_in():
            pass
        await self._read_unread(MOST_FAILURES)
        while not await self._renew_descriptions():
            pass
        while (ended or self._lacks_a_session()) and not await self._renew_hierarchy():
            pass

    async def _take_in(self) -> bool:
        """Take in new episodes; False if the log grew by other steps, and is to be read again."""
        log = self._log
        return await self._read_all(find_fresh(self._talk, log.state, log.forgotten), {})

    async def _read_unread(self, most: int) -> None:
        """Read the episodes whose reading failed ``most`` times or less, each once."""
        if self._config.reads_graph and (unread := self._log.state.find_unread(most)):
            episodes = self._log.state.episodes.values()
            await self._read_all([each for each in episodes if each.number in unread], unread)

    async def _read_all(self, fresh: Sequence[Episode], failures: Mapping[int, int]) -> bool:
        """Read episodes, a step each; False as ``_take_in``.

        ``failures`` says how often the reading of an episode, by its number, failed before. Where
        no question reads the graph, they are only put into the log.
        """
        log, tools, step = self._log, self._tools, self._log.step
        known = len(log.state.episodes) - len(failures)
        total = known + len(fresh)
        tools.observer.progress("episodes", known, total)
        with log.note_shown():
            source = self._talk
            for done, episode in enumerate(fresh, known + 1):
                if log.step != step:
                    return False
                draft, number = log.draft(), episode.number
                if number not in draft.state.episodes:
                    draft.put(AddEpisode(episode))
                if not self._config.reads_graph:
                    draft.put(MarkEpisode(number, 0))
                elif not await self._read(draft, source, episode, failures.get(number, 0)):
                    draft.put(MarkEpisode(number, failures.get(number, 0) + 1))
                elif number in failures:
                    draft.put(MarkEpisode(number, None))
                if not log.write(draft):
                    return False
                step += 1
                tools.observer.progress("episodes", done, total)
        return True

    async def _read(
        self, draft: EditDraft, source: Conversation, episode: Episode, failures: int
    ) -> bool:
        """Read an episode, which the draft has, into it; False if a reply could not be used."""
        reader = self._open_reader(draft, source, [episode], failures)
        index = await self._grow_index(lambda index: index.grow_candidates(self._log.state))
        return await read_episode(reader, draft, index)

    def _open_reader(
        self,
        draft: EditDraft,
        source: Conversation,
        episodes: Sequence[Episode],
        failures: int = 0,
    ) -> EpisodeReader:
        about = self._tools.llm, self._config, source, draft.state, episodes
        return EpisodeReader(*about, failures)

    async def _renew_descriptions(self) -> bool:
        """Describe again what lost its description to a deletion; False as ``_take_in``.

        What cannot be described keeps what is said of it.
        """
        log = self._log
        if not log.state.stale:
            return True
        with log.note_shown():
            draft = log.draft()
            await self._describe_again(draft)
            await self._hierarchy.describe_stale(draft)
            for identity in sorted(draft.state.stale):
                node = draft.state.node(identity)
                draft.put(Describe(identity, node.summary, node.tags))
            return log.write(draft)

    async def _describe_again(self, draft: EditDraft) -> None:
        """Describe the entities that lost their description, from the episodes that are left."""
        source = self._talk
        for numbers, ids in _group_by_episodes(self._log.state).items():
            episodes = [draft.state.episodes[number] for number in numbers]
            await describe_entities(self._open_reader(draft, source, episodes), draft, ids)

    async def _renew_hierarchy(self, *, is_retried: bool = False) -> bool:
        """Let the hierarchy follow the entities, if a route reads it; False as ``_take_in``.

        One that failed is built again, ``MOST_FAILURES`` times.
        """
        log = self._log
        if not self._is_due(log.state, sys.maxsize if is_retried else MOST_FAILURES):
            return True
        with log.note_shown():
            draft = log.draft()
            await self._hierarchy.renew(draft)
            return log.write(draft)

    def _is_due(self, state: MnemisState, most: int = MOST_FAILURES) -> bool:
        """Whether the hierarchy lacks entities, or failed to be built ``most`` times or less."""
        is_behind = len(state.entities) != state.categorised or 0 < state.failed_builds <= most
        return self._config.routes != "system1" and is_behind

    def _lacks_a_session(self) -> bool:
        """Whether the hierarchy lacks an entity of a session that has ended; where it does not
        follow the entities, whether it lacks too many besides."""
        log, config, state = self._log, self._config, self._log.state
        lacking = len(state.entities) - (state.categorised or 0)
        if config.routes == "system1" or lacking <= 0:
            return False
        first = state.entities.last(lacking)[0].mentions[0].episode
        said = state.episodes[first].turns
        if not said or log.turns[said[0]].session == log.turns[-1].session:
            return False
        return config.hierarchy == "incremental" or needs_rebuild(state)

    # Control

    async def edit(self, node: str, change: Change) -> None:
        """Let an entity take in another; nothing else is changed by hand."""
        if change.merge is None or change.frozen is not None or change.unlink:
            raise refuse_topics()
        async with self._writer() as log:
            is_written = False
            while not is_written:
                draft = log.draft()
                merge_entities(draft, node, change.merge, change.summary, change.keywords)
                is_written = log.write(draft)

    def _nodes(self, state: MnemisState) -> Collection[str]:
        return [*state.entities, *state.facts]

    def _count_renewals(self, state: MnemisState) -> tuple[int, bool]:
        calls = self._count_descriptions(state)
        calls += self._hierarchy.count_stale_calls(state)
        least = self._hierarchy.count_calls(state) if self._is_due(state) else None
        return calls + (least or 0), least is not None

    def _count_descriptions(self, state: MnemisState) -> int:
        """Count the model calls that describe entities again."""
        size = DESCRIBING.count_together(self._tools.llm)
        groups = _group_by_episodes(state).values()
        return sum(len(in_batches(ids, size)) for ids in groups)

    # Reading

    async def read(self, question: Question) -> RetrievedNodes:
        """Find what the configured routes give; all of it is in the state when this returns."""
        check_question(question)
        self._log.open(self._record)
        while True:
            index = await self._grow_index(lambda index: index.update(self._log.state, self._talk))
            about = self._talk, question, self._config, self.ask_nodes
            with self._log.note_shown():
                reading = await find(self._tools, index, *about)
            self._log.catch_up()
            if self._open_index() is index:  # else something was deleted meanwhile
                return reading

    async def recall(self, question: Question, *, recent: Sequence[int] = ()) -> Recall:
        """Find facts, entities and episodes, which stand on the turns that mention them, and turns
        that are in no episode yet."""
        reading = await self.read(question)
        log, state = self._log, self._log.state
        fresh = await self._find_fresh(question, recent)
        if recent:
            reading = reading.until(recent[-1], state, shown=recent[0])
        items = reading.items(state, self._talk, ends_known=self.is_understood)
        whole = {*state.categories, *(state.entities if self.is_understood else ())}
        summaries = (item.id for item in items if item.id in whole)
        return Recall(
            [*((item.turns, item.text) for item in items), *show_turns(log.turns, fresh)],
            [*fresh, *reading.rank_turns(items)],
            (*reading.trace(state), *self._trace_unread()),
            reading.paths,
            frozenset(turns_below(state, *summaries)),
        )

    async def _find_fresh(self, question: Question, recent: Sequence[int]) -> list[int]:
        """The numbers of the turns without an episode that are most like a question, the best
        first; none of those that are shown as they are."""
        log, source, embedder = self._log, self._talk, self._tools.required_embedder
        end = recent[0] if recent else len(source.turns)
        waiting = find_fresh(source, log.state, log.forgotten)
        fresh = [number for each in waiting for number in each.turns if number < end][-WAITING:]

        def rank() -> list[int]:
            said = {source.turns[number].line: (number,) for number in fresh}
            with note_made_of(said):
                lines = embedder.embed([source.turns[number].line for number in fresh])
            alike = lines @ embedder.embed([question.text], task="query")[0]
            return [fresh[place] for place, _ in best(alike, FRESH)]

        return await asyncio.to_thread(rank) if fresh else []

    def _trace_unread(self) -> tuple[str, ...]:
        count = len(self._log.state.find_unread(sys.maxsize)) if self._config.reads_graph else 0
        return (f"{count} episodes were not read whole: build again",) if count else ()

    async def answer(self, question: Question) -> Answer:
        """Answer from what is remembered, citing turns; builds first if it has no episodes yet."""
        check_question(question)
        if not self.state.episodes:
            await self.build()
        answer = await super().answer(question)
        return replace(answer, marks=(UNREAD,)) if self._trace_unread() else answer

    async def _grow_index(self, grow: Callable[[Index], None]) -> Index:
        """Return the index once ``grow`` was called with it; made anew after a deletion."""
        log, tools = self._log, self._tools
        async with self._indexing:
            while True:
                index, deletions = self._open_index(), log.deletions
                with log.note_shown():
                    await asyncio.to_thread(grow, index)
                log.catch_up()
                if deletions == log.deletions:
                    return index
                tools.store.drop_indexes(f"{self.id}/")  # it may have stored what was deleted

    def _open_index(self) -> Index:
        """The index of the nodes; another one after a deletion or a merge, for it may have their
        words."""
        tools, made_for = self._tools, (self._log.deletions, len(self._log.state.merged))
        if self._indexes is None or self._indexes[0] != made_for:
            about = tools.required_embedder, tools.store, self.id
            self._indexes = made_for, Index(*about, in_context=self.in_context)
        return self._indexes[1]

    @cached_property
    def _indexing(self) -> asyncio.Lock:
        return asyncio.Lock()

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The categories over the entities, and the facts between these."""
        nodes, edges = _draw_graph(self.state, self._log.rows)
        return self._view(nodes, edges, steps=self._log.step, answers=answers)

    def measure(self) -> MemorySize:
        state = self.state
        held = sum(len(category.children) for category in state.categories.values())
        nodes, edges = len(state.entities) + len(state.categories), len(state.facts) + held
        return MemorySize(nodes, edges, self._log.step)


async def read_episode(reader: EpisodeReader, draft: EditDraft, index: Index) -> bool:
    """Read an episode, which the draft has, into it; False if a reply could not be used.

    ``index`` has the names and facts before it. Raises the EngineError family.
    """
    ids = await match_names(reader, draft, index, await find_names(reader, draft))
    entities = (draft.state.entities[each] for each in ids)
    number = reader.episode.number
    named = [e.id for e in entities if e.mentions[-1].episode == number or not e.summary]
    await describe_entities(reader, draft, named)
    await match_facts(reader, draft, index, await find_facts(reader, draft, ids))
    return not reader.failed


def stale_entities(state: MnemisState) -> list[Entity]:
    """Return the entities that wait for a description."""
    return [entity for entity in state.entities.values() if entity.id in state.stale]


def _group_by_episodes(state: MnemisState) -> Mapping[tuple[int, ...], list[str]]:
    """Return the ids of stale entities by the episodes that they are described from together."""
    together: dict[tuple[int, ...], list[str]] = {}
    for entity in stale_entities(state):
        together.setdefault(entity.episodes[-LAST:], []).append(entity.id)
    return together


# The view


def _draw_graph(
    state: MnemisState, rows: Sequence[EditRecord]
) -> tuple[list[ViewNode], list[ViewEdge]]:
    """Return the nodes and edges of a state, which ``rows`` lead to.

    A category stands on the first mention of its first entity, and its kind is its layer.
    """
    steps = dict(_find_steps(rows))
    nodes: list[ViewNode] = []
    edges: list[ViewEdge] = []
    for entity in state.entities.values():
        about = entity.name, entity.summary or entity.name, entity.mentions[0].span
        nodes.append(ViewNode(entity.id, "entity", *about, steps[entity.id]))
    for fact in state.facts.values():
        ends, span = (fact.id, fact.source, fact.target), fact.mentions[0].span
        edges.append(ViewEdge(*ends, fact.text, span, steps[fact.id]))
    for category in state.categories.values():
        span, step = _find_span(state, category), steps[category.id]
        about = category.name, category.summary or category.name, span
        kind = f"layer {category.layer}"
        nodes.append(ViewNode(category.id, kind, *about, step, layer=category.layer))
        for child in category.children:
            identity = f"{category.id}|{child}"
            begun = steps.get(identity, step)
            edges.append(ViewEdge(identity, category.id, child, "holds", span, begun))
    return nodes, edges


def _find_steps(rows: Sequence[EditRecord]) -> Iterator[tuple[str, int]]:
    """Yield the step at which each element came."""
    for row in rows:
        edit = VOCABULARY.edit(row)
        if isinstance(edit, AddEntity | AddFact | PutCategory):
            yield edit.id, row.chunk
        elif isinstance(edit, Restore):
            yield edit.node.id, row.chunk
        elif isinstance(edit, Assign):
            yield f"{edit.category}|{edit.child}", row.chunk


def _find_span(state: MnemisState, category: Category) -> Span:
    """Return the first mention of the first entity below a category."""
    first = category.children[0]
    while first in state.categories:
        first = state.categories[first].children[0]
    return state.entities[first].mentions[0].span
