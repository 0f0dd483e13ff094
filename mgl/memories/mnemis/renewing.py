"""Descriptions that went with a deletion are made again, from what is left.

An entity is described from the last episodes that mention it, with what was known before; without
a model (``terms``), by its first sentences. A category is described from its children.
"""

from __future__ import annotations

from typing import Final

from mgl.llm.base import LLM
from mgl.memories.mnemis import describing
from mgl.memories.mnemis.asking import Asker
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.entities import describe
from mgl.memories.mnemis.ledger import Ledger
from mgl.memories.mnemis.nodes import Entity, Episode
from mgl.memories.mnemis.state import Describe, State
from mgl.memories.mnemis.terms import told
from mgl.memories.mnemis.update import TOGETHER
from mgl.store import EditRecord
from mgl.types import Source, Span

__all__ = ["renew"]

LAST: Final = 6
"""Episodes that an entity is described from."""


async def renew(
    llm: LLM, source: Source, state: State, config: MnemisConfig, *, step: int
) -> list[EditRecord]:
    """The rows of one step: a description for each stale node; where none can be had, the one that
    is there. A hierarchy that is rebuilt is left to that.

    Raises the EngineError family, but for ReplyInvalid.
    """
    ledger = Ledger(step, state)
    entities = [entity for entity in state.entities.values() if entity.id in state.stale]
    if config.extraction == "terms":
        for entity in entities:
            ledger.put(told(source, state, entity))
    else:
        await _asked(llm, source, ledger, entities, config)
    rows, state = ledger.rows, ledger.state
    if config.hierarchy != "rebuild":
        for layer in range(1, state.top + 1):
            ids = [node.id for node in state.layer(layer) if node.id in state.stale]
            made, state = await describing.describe(
                llm, state, ids, config, step=step, together=TOGETHER
            )
            rows += made
    rest = Ledger(step, state)
    for identity in sorted(state.stale):
        node = state.node(identity)
        rest.put(Describe(identity, node.summary, node.tags))
    return [*rows, *rest.rows]


async def _asked(
    llm: LLM, source: Source, ledger: Ledger, entities: list[Entity], config: MnemisConfig
) -> None:
    together: dict[tuple[int, ...], list[str]] = {}
    for entity in entities:
        together.setdefault(entity.episodes[-LAST:], []).append(entity.id)
    for numbers, ids in together.items():
        episodes = ledger.state.episodes.values()
        asker = Asker(llm, source, episodes, _joined(ledger.state, numbers), config)
        await describe(asker, ledger, ids)


def _joined(state: State, numbers: tuple[int, ...]) -> Episode:
    """Some episodes as one that is shown."""
    some = [state.episodes[number] for number in numbers]
    turns = sorted(turn for episode in some for turn in episode.turns)
    start, end = min(each.span.start for each in some), max(each.span.end for each in some)
    return Episode(numbers[-1], Span(some[0].span.document_id, start, end), tuple(turns))
