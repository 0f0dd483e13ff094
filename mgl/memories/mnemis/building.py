"""What a memory lacks is made: its next episodes, descriptions that went, the hierarchy.

Each is a step of the log. Where another process writes the step first, or something is deleted
meanwhile, what was made is thrown away and looked at again.
"""

from __future__ import annotations

from contextlib import nullcontext

from mgl.memories.base import Tools
from mgl.memories.mnemis.ahead import Ahead
from mgl.memories.mnemis.asking import Asker
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.describing import DESCRIBE, DESCRIBE_SEVERAL
from mgl.memories.mnemis.entities import Named, ask_names
from mgl.memories.mnemis.episodes import episodes_of
from mgl.memories.mnemis.hierarchy import build_hierarchy
from mgl.memories.mnemis.ingest import ingest
from mgl.memories.mnemis.ingest_prompts import (
    FACTS,
    MORE_FACTS,
    MORE_NAMES,
    NAMES,
    SAME_ENTITIES,
    SAME_FACTS,
    SUMMARIES,
)
from mgl.memories.mnemis.likeness import NAME_CATEGORY
from mgl.memories.mnemis.log import Log
from mgl.memories.mnemis.nodes import Episode
from mgl.memories.mnemis.printed import CATEGORIES, CATEGORIES_SYSTEM, GUIDANCE
from mgl.memories.mnemis.renewing import renew
from mgl.memories.mnemis.update import needs_rebuild, update_hierarchy
from mgl.prompt import Prompt
from mgl.store import EditRecord

__all__ = ["categorise", "take_in", "writing_prompts"]


def writing_prompts(config: MnemisConfig) -> tuple[Prompt, ...]:
    """The prompts that decide what a memory of this configuration holds, whichever routes read it:
    those of the selection and of the answer are not among them."""
    by_model = config.grouping == "model"
    base: tuple[Prompt, ...] = (NAMES, SAME_ENTITIES, SUMMARIES, FACTS, SAME_FACTS)
    return (
        *(base if config.extraction == "model" else ()),
        *((MORE_NAMES, MORE_FACTS) if config.extraction == "model" and config.reflect else ()),
        *((CATEGORIES_SYSTEM, GUIDANCE, CATEGORIES) if by_model else (NAME_CATEGORY,)),
        DESCRIBE,
        *((DESCRIBE_SEVERAL,) if config.hierarchy == "incremental" else ()),
    )


async def take_in(tools: Tools, log: Log, config: MnemisConfig, *, ended: bool) -> None:
    """Ingest the episodes that are complete, with ``ended`` also the last."""
    while not await _taken_in(tools, log, config, ended=ended):
        pass


async def categorise(tools: Tools, log: Log, config: MnemisConfig) -> None:
    """Describe what lost its description; then build the hierarchy, or take it further, where
    entities came or went since the last time and a route reads it."""
    while not (await _renewed(tools, log, config) and await _categorised(tools, log, config)):
        pass


async def _taken_in(tools: Tools, log: Log, config: MnemisConfig, *, ended: bool) -> bool:
    """False where the log has grown by other than the episodes that were planned."""
    step, source = log.step, log.source
    known = log.state.episodes
    episodes = await episodes_of(
        source,
        config,
        tools.llm.count_tokens,
        known=tuple(known.values()),
        ended=ended,
        forgotten=log.forgotten,
        first=log.state.counts.get("n", 0),
    )
    tools.observer.progress("episodes", len(known), len(episodes))
    fresh = [episode for episode in episodes if episode.number not in known]
    asks = config.extraction == "model"

    async def name(episode: Episode) -> Named:
        with log.minding(source):
            return await ask_names(Asker(tools.llm, source, episodes, episode, config), config)

    async with Ahead(fresh, name) as ahead:
        for done, episode in enumerate(fresh, len(episodes) - len(fresh) + 1):
            if log.step != step:
                return False
            with log.minding(source) if asks else nullcontext():
                rows, _ = await ingest(
                    tools.llm,
                    tools.required_embedder,
                    source,
                    log.state,
                    episode,
                    config,
                    step=step,
                    places=log.places,
                    named=await ahead.of(episode) if asks else None,
                )
                if not log.write(rows):
                    return False
            step += 1
            tools.observer.progress("episodes", done, len(episodes))
    return True


async def _renewed(tools: Tools, log: Log, config: MnemisConfig) -> bool:
    if not log.state.stale:
        return True
    source = log.source
    with log.minding(source):
        rows = await renew(tools.llm, source, log.state, config, step=log.step)
        return log.write(rows)


async def _categorised(tools: Tools, log: Log, config: MnemisConfig) -> bool:
    state, step = log.state, log.step
    if config.routes == "system1" or len(state.entities) == log.categorised:
        return True
    llm, embedder = tools.llm, tools.required_embedder
    with log.minding(log.source):
        stopped = "updated"
        again = config.hierarchy == "rebuild" or not state.categories
        if again or needs_rebuild(state, config):
            rows, made, stopped = await build_hierarchy(
                llm, embedder, state, config, step=step, observer=tools.observer
            )
        else:
            rows, made = await update_hierarchy(llm, embedder, state, config, step=step)
        told = {"stopped": stopped, "entities": len(made.entities), "layers": made.top}
        return log.write([*rows, EditRecord(step, "hierarchy", told, "applied")])
