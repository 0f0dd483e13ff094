"""Descriptions that went with a deletion are made again, from what is left.

An entity is described from the last episodes that mention it, with what was known before; without
a model (``terms``), by its first sentences. A category is described from its children.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mgl.memories.base import Tools
from mgl.memories.log import Draft
from mgl.memories.mnemis.categorise import describe_categories
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import Describe, Edit
from mgl.memories.mnemis.entities import describe_entities
from mgl.memories.mnemis.extract import EpisodeReader, in_batches
from mgl.memories.mnemis.hierarchy import TOGETHER
from mgl.memories.mnemis.small.terms import describe_by_sentences
from mgl.memories.mnemis.state import Entity, Episode, State
from mgl.types import Source, Span

LAST: Final = 6
"""Episodes that an entity is described from."""


async def renew(
    tools: Tools, source: Source, draft: Draft[Edit, State], config: MnemisConfig
) -> None:
    """Describe each stale node; one that cannot be described keeps what is said of it.

    A hierarchy that is rebuilt is left to that. Raises what ``propose`` raises.
    """
    state = draft.state
    stale = [entity for entity in state.entities.values() if entity.id in state.stale]
    if config.extraction == "terms":
        for entity in stale:
            draft.put(describe_by_sentences(source, draft.state, entity))
    else:
        await _describe(tools, source, draft, stale, config)
    if config.hierarchy != "rebuild":
        for layer in range(1, draft.state.top + 1):
            ids = [each.id for each in draft.state.layer(layer) if each.id in draft.state.stale]
            await describe_categories(tools, draft, ids, config, together=TOGETHER)
    for identity in sorted(draft.state.stale):
        node = draft.state.node(identity)
        draft.put(Describe(identity, node.summary, node.tags))


def count_renewals(state: State, config: MnemisConfig) -> int:
    """How many model calls ``renew`` takes."""
    stale = [entity for entity in state.entities.values() if entity.id in state.stale]
    calls = 0
    if config.extraction == "model":
        calls += sum(len(in_batches(ids)) for ids in _group(stale).values())
    for layer in range(1, state.top + 1) if config.hierarchy != "rebuild" else ():
        own = [each for each in state.categories_of(layer) if each.id in state.stale]
        calls += len(in_batches([each for each in own if not each.is_promotion], TOGETHER))
    return calls


def _group(entities: Sequence[Entity]) -> dict[tuple[int, ...], list[str]]:
    """The ids of entities by the episodes that they are described from together."""
    together: dict[tuple[int, ...], list[str]] = {}
    for entity in entities:
        together.setdefault(entity.episodes[-LAST:], []).append(entity.id)
    return together


async def _describe(
    tools: Tools,
    source: Source,
    draft: Draft[Edit, State],
    entities: list[Entity],
    config: MnemisConfig,
) -> None:
    for numbers, ids in _group(entities).items():
        episodes = draft.state.episodes.values()
        episode = _join(draft.state, numbers)
        reader = EpisodeReader(tools.llm, source, episodes, episode, config)
        await describe_entities(reader, draft, ids)


def _join(state: State, numbers: tuple[int, ...]) -> Episode:
    """Some episodes as one that is shown."""
    some = [state.episodes[number] for number in numbers]
    turns = sorted(turn for episode in some for turn in episode.turns)
    start, end = min(each.span.start for each in some), max(each.span.end for each in some)
    return Episode(numbers[-1], Span(some[0].span.document_id, start, end), tuple(turns))
