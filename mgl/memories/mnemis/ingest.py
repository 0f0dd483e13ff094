"""Take the next episodes of a source into the base graph.

Source: Mnemis §2.1, in its order: names, reflection, matching of names, summaries and tags, facts,
reflection, matching of facts. With ``extraction = terms`` code reads the episode (``small.terms``)
and no call is made. What a reply that stays invalid was to say is missing, and a row says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Generic, Self, TypeVar

from mgl.memories.base import Tools
from mgl.memories.log import Draft
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import AddEpisode, Edit
from mgl.memories.mnemis.entities import (
    NamesOfParts,
    ask_names,
    describe_entities,
    find_names,
    match_names,
)
from mgl.memories.mnemis.extract import EpisodeReader
from mgl.memories.mnemis.facts import find_facts, match_facts
from mgl.memories.mnemis.small.terms import Places, read_terms
from mgl.memories.mnemis.state import Entity, Episode, State, key_of
from mgl.types import Document, Source

AT_ONCE: Final = 8
"""Episodes whose names are asked for at once, the awaited one among them."""

ResultT = TypeVar("ResultT")


class Ingestion:
    """Takes the ``fresh`` episodes of a source in, one after the other.

    The names of the next episodes are asked for while one is taken in (ours): they are read off the
    source alone, where all else needs the state before. Used as a context manager, which cancels
    what nobody awaited. ``places`` are those of the source's terms, as far as they were read.
    """

    def __init__(
        self,
        tools: Tools,
        source: Source,
        episodes: Sequence[Episode],
        fresh: Sequence[Episode],
        config: MnemisConfig,
        places: Places,
    ) -> None:
        """``episodes`` are all of the source in order, of which ``fresh`` are the last."""
        self._tools = tools
        self._source = source
        self._episodes = episodes
        self._config = config
        self._places = places
        is_asked = config.extraction == "model"
        self._names = Ahead(fresh if is_asked else (), self._ask_names)

    async def take_in(self, draft: Draft[Edit, State], episode: Episode) -> None:
        """Put the next episode into the draft. Raises the EngineError family."""
        draft.put(AddEpisode(episode))
        if self._config.extraction == "terms":
            read_terms(draft, self._source, episode, self._places)
            return
        embedder = self._tools.required_embedder
        replies = await self._names.get(episode)
        reader = self._reader(episode)
        found = find_names(reader, draft, episode.number, replies)
        speakers = self._speakers(episode)
        ids = await match_names(reader, embedder, draft, episode.number, found, speakers)
        if due := [each for each in ids if self._is_due(draft.state.entities[each])]:
            await describe_entities(reader, draft, due)
        stated = await find_facts(reader, draft, episode.number, ids)
        await match_facts(reader, embedder, draft, stated)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._names.cancel()

    async def _ask_names(self, episode: Episode) -> NamesOfParts:
        return await ask_names(self._reader(episode))

    def _reader(self, episode: Episode) -> EpisodeReader:
        llm, config = self._tools.llm, self._config
        return EpisodeReader(llm, self._source, self._episodes, episode, config)

    def _is_due(self, entity: Entity) -> bool:
        """Whether an entity that the episode names is described there."""
        named = len(entity.episodes)
        is_doubled = named.bit_count() == 1
        return self._config.described == "always" or not entity.summary or is_doubled

    def _speakers(self, episode: Episode) -> frozenset[str]:
        """Return the keys of all who spoke up to an episode's end."""
        if isinstance(self._source, Document):
            return frozenset()
        turns = self._source.turns[: episode.turns[-1] + 1]
        return frozenset(key_of(turn.speaker) for turn in turns) - {""}


class Ahead(Generic[ResultT]):
    """Asks about some episodes in their order, ahead of what is awaited."""

    def __init__(
        self, episodes: Sequence[Episode], ask: Callable[[Episode], Coroutine[Any, Any, ResultT]]
    ) -> None:
        self._rest = iter(episodes)
        self._ask = ask
        self._tasks: dict[int, asyncio.Task[ResultT]] = {}

    async def get(self, episode: Episode) -> ResultT:
        """Return the result for the next episode, or raise what was raised."""
        for following in self._rest:
            self._tasks[following.number] = asyncio.create_task(self._ask(following))
            if len(self._tasks) == AT_ONCE:
                break
        return await self._tasks.pop(episode.number)

    async def cancel(self) -> None:
        """Cancel what nobody awaited."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
