"""An episode taken into the base graph.

Source: Mnemis §2.1, in its order: names, reflection, de-duplication of entities, their summaries
and tags, facts, reflection, de-duplication of facts. With ``extraction = terms`` it costs no call
(``terms``). What a reply that stays invalid was to tell is missing, and said so in a row; all else
goes on.
"""

from __future__ import annotations

from mgl.llm.base import LLM
from mgl.memories.graph.names import entity_key
from mgl.memories.mnemis.asking import Asker
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.entities import Named, ask_names, describe, find, settle
from mgl.memories.mnemis.facts import find_facts
from mgl.memories.mnemis.joining import join
from mgl.memories.mnemis.ledger import Ledger
from mgl.memories.mnemis.nodes import Entity, Episode
from mgl.memories.mnemis.places import Places
from mgl.memories.mnemis.state import AddEpisode, State
from mgl.memories.mnemis.terms import take_terms
from mgl.retrieval.base import Embedder
from mgl.store import EditRecord
from mgl.types import Document, Source

__all__ = ["ingest"]


async def ingest(
    llm: LLM,
    embedder: Embedder,
    source: Source,
    state: State,
    episode: Episode,
    config: MnemisConfig,
    *,
    step: int,
    places: Places | None = None,
    named: Named | None = None,
) -> tuple[list[EditRecord], State]:
    """The rows of an episode, and the state with it. One that is there already gives no row.
    ``places`` are those of the source's terms as far as they were read (``terms``); ``named`` is
    what the model named, where it was asked beforehand.

    Raises the EngineError family, but for ReplyInvalid.
    """
    if episode.number in state.episodes:
        return [], state
    ledger = Ledger(step, state)
    ledger.put(AddEpisode(episode))
    if config.extraction == "terms":
        take_terms(ledger, source, episode, places or Places())
        return ledger.rows, ledger.state
    asker = Asker(llm, source, state.episodes.values(), episode, config)
    replies = named if named is not None else await ask_names(asker, config)
    found = find(asker, ledger, episode.number, replies)
    speakers = _speakers(source, episode)
    ids = await settle(asker, embedder, ledger, episode.number, found, config, speakers=speakers)
    if due := [each for each in ids if _is_due(ledger.state.entities[each], config)]:
        await describe(asker, ledger, due)
    stated = await find_facts(asker, ledger, episode.number, ids, config)
    await join(asker, embedder, ledger, stated, config)
    return ledger.rows, ledger.state


def _is_due(entity: Entity, config: MnemisConfig) -> bool:
    """Whether an entity that an episode names is described there."""
    named = len(entity.episodes)
    return config.described == "always" or not entity.summary or named.bit_count() == 1


def _speakers(source: Source, episode: Episode) -> frozenset[str]:
    """The keys of all who spoke up to an episode's end."""
    if isinstance(source, Document):
        return frozenset()
    said = source.turns[: episode.turns[-1] + 1]
    return frozenset(entity_key(turn.speaker) for turn in said) - {""}
