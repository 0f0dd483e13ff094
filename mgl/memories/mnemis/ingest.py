"""How an episode is read into the base graph, and how an entity is described again.

Source: Mnemis §2.1, in its order: names, reflection, matching of names, summaries and tags, facts,
reflection, matching of facts. What a reply that stays invalid was to say is missing, and a row says
so: the episode is read again later. With ``extraction = terms`` code reads the episode
(``small.terms``) and no call is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol

from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import EditDraft
from mgl.memories.mnemis.entities import count_together, describe_entities, match_names
from mgl.memories.mnemis.extract import EpisodeReader, in_batches
from mgl.memories.mnemis.facts import FactMatcher, find_facts
from mgl.memories.mnemis.naming import NamesOfParts, ask_names, find_names
from mgl.memories.mnemis.state import Entity, Episode, State, key_of
from mgl.types import Conversation, Source, Span

AT_ONCE: Final = 8
"""Episodes whose names are asked for at once, the awaited one among them."""

LAST: Final = 6
"""Episodes that an entity is described from again."""

ReadEpisode = Callable[[EditDraft, Episode], Awaitable[bool]]
"""Reads the next episode, which the draft has, into it; False if a reply could not be used. Raises
the EngineError family."""


class Intake(Protocol):
    """Reads the episodes of a source."""

    def over(
        self,
        source: Source,
        episodes: Sequence[Episode],
        fresh: Sequence[Episode],
        failures: Mapping[int, int],
    ) -> AbstractAsyncContextManager[ReadEpisode]:
        """Read ``fresh`` episodes one after the other, which are some of ``episodes``.

        ``failures`` says how often the reading of an episode, by its number, failed before.
        """
        ...

    async def describe(self, source: Source, draft: EditDraft, entities: Sequence[Entity]) -> None:
        """Describe entities that lost their description to a deletion, from what is left."""
        ...

    def count_calls(self, entities: Sequence[Entity]) -> int:
        """Return how many model calls ``describe`` takes."""
        ...


class ModelIntake:
    """Has a model read.

    The names of the next episodes are asked for while one is read (ours): they are read off the
    source alone, where all else needs the state before.
    """

    def __init__(self, tools: Tools, config: MnemisConfig) -> None:
        self._tools = tools
        self._config = config
        self._matcher = FactMatcher(tools.required_embedder)

    @asynccontextmanager
    async def over(
        self,
        source: Source,
        episodes: Sequence[Episode],
        fresh: Sequence[Episode],
        failures: Mapping[int, int],
    ) -> AsyncIterator[ReadEpisode]:
        rest = iter(fresh)
        asked: dict[int, tuple[EpisodeReader, asyncio.Task[NamesOfParts]]] = {}

        async def read(draft: EditDraft, episode: Episode) -> bool:
            for following in rest:
                before = failures.get(following.number, 0)
                about = source, episodes, following, self._config, before
                reader = EpisodeReader(self._tools, *about)
                asked[following.number] = reader, asyncio.create_task(ask_names(reader))
                if len(asked) == AT_ONCE:
                    break
            reader, names = asked.pop(episode.number)
            found = find_names(reader, draft, await names)
            ids = await match_names(reader, draft, found, _find_speakers(source, episode))
            entities = (draft.state.entities[each] for each in ids)
            due = [each.id for each in entities if self._is_due(each, episode)]
            await describe_entities(reader, draft, due)
            stated = await find_facts(reader, draft, ids)
            await self._matcher.match(reader, draft, stated)
            return not reader.failed

        try:
            yield read
        finally:
            tasks = [task for _, task in asked.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _is_due(self, entity: Entity, episode: Episode) -> bool:
        """Whether an entity that an episode names, or a recent one, is described there."""
        is_named = entity.mentions[-1].episode == episode.number
        is_doubled = len(entity.episodes).bit_count() == 1
        is_new = is_named and (self._config.described == "always" or is_doubled)
        return is_new or not entity.summary

    async def describe(self, source: Source, draft: EditDraft, entities: Sequence[Entity]) -> None:
        """Describe entities from the last episodes that mention them, and what was known before."""
        episodes = draft.state.episodes
        for numbers, ids in _group_by_episodes(entities).items():
            joined = _join_episodes(draft.state, numbers)
            reader = EpisodeReader(self._tools, source, episodes.values(), joined, self._config)
            await describe_entities(reader, draft, ids)

    def count_calls(self, entities: Sequence[Entity]) -> int:
        size = count_together(self._tools.llm)
        return sum(len(in_batches(ids, size)) for ids in _group_by_episodes(entities).values())


def _find_speakers(source: Source, episode: Episode) -> frozenset[str]:
    """Return the keys of all who spoke up to an episode's end."""
    if not isinstance(source, Conversation):
        return frozenset()
    turns = source.turns[: episode.turns[-1] + 1]
    return frozenset(key_of(turn.speaker) for turn in turns) - {""}


def _group_by_episodes(entities: Sequence[Entity]) -> Mapping[tuple[int, ...], list[str]]:
    """Return the ids of entities by the episodes that they are described from together."""
    together: dict[tuple[int, ...], list[str]] = {}
    for entity in entities:
        together.setdefault(entity.episodes[-LAST:], []).append(entity.id)
    return together


def _join_episodes(state: State, numbers: Sequence[int]) -> Episode:
    """Return some episodes as one that is shown."""
    some = [state.episodes[number] for number in numbers]
    turns = sorted(turn for episode in some for turn in episode.turns)
    start, end = min(each.span.start for each in some), max(each.span.end for each in some)
    return Episode(numbers[-1], Span(some[0].span.document_id, start, end), tuple(turns))
