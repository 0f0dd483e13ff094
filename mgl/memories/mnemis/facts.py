"""The facts of an episode, as the model states them between two of its entities.

Source: Mnemis §2.1. Times are given in words, and resolved against the time of the turn that states
the fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mgl.memories.graph.names import mentions
from mgl.memories.mnemis.asking import Asker, Part, Said, batches, clipped
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.ingest_prompts import FACTS, MORE_FACTS
from mgl.memories.mnemis.ledger import Ledger, naive
from mgl.memories.mnemis.moments import moment, says_nothing
from mgl.memories.mnemis.naming import key_of, keys_of
from mgl.memories.mnemis.nodes import Entity, Mention
from mgl.memories.mnemis.proposals import Facts, StatedFact, facts_schema
from mgl.memories.mnemis.state import AddFact

__all__ = ["Stated", "find_facts"]

ENTITIES: Final = 40
"""Entities that a list of facts is asked for at a time."""

MOST_CHARS, SHOWN_CHARS, ALIASES = 500, 200, 4


@dataclass(frozen=True, slots=True)
class Stated:
    """A fact that an episode states, its entities by id; ``said_at`` is when it was stated."""

    source: str
    target: str
    text: str
    mention: Mention
    said_at: datetime | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    repaired: str | None = None
    call_key: str | None = None

    @property
    def ends(self) -> frozenset[str]:
        return frozenset((self.source, self.target))

    def edit(self, identity: str) -> AddFact:
        """What puts it into the state."""
        return AddFact(
            identity,
            self.source,
            self.target,
            self.text,
            self.mention,
            self.valid_at,
            self.invalid_at,
        )


async def find_facts(
    asker: Asker,
    ledger: Ledger,
    number: int,
    ids: Mapping[str, Part],
    config: MnemisConfig,
) -> list[Stated]:
    """The facts of the episode of this number; ``ids`` are its entities, each with the sentences
    that name it."""
    asked = [(part, some) for part in asker.parts for some in _together(asker, part, ledger, ids)]
    made = await asyncio.gather(*(_listed(asker, part, some, config) for part, some in asked))
    found: dict[tuple[frozenset[str], str], Stated] = {}
    for (_, some), replies in zip(asked, made, strict=True):
        by_name = {entity.name: entity.id for entity in some}
        for said in replies:
            if said.proposal is None:
                ledger.fail(said.stage, said.problem)
                continue
            for item in said.proposal.facts:
                mention = Mention(number, asker.passage.span(item.src))
                ends = by_name[item.source], by_name[item.target]
                text = clipped(item.fact, MOST_CHARS)
                at = asker.passage.times[item.src - 1]
                fact = Stated(*ends, text, mention, at, call_key=said.call_key)
                if text and len(fact.ends) == 2:
                    found.setdefault((fact.ends, text.casefold()), _dated(fact, item))
                else:
                    reason = "same_ends" if text else "empty"
                    ledger.put(fact.edit(""), rejected=reason, call_key=said.call_key)
    return list(found.values())


async def _listed(
    asker: Asker, part: Part, entities: Sequence[Entity], config: MnemisConfig
) -> list[Said[Facts]]:
    names = [entity.name for entity in entities]
    listed = "\n".join(f"- {_line(entity)}" for entity in entities)
    schema = facts_schema(names, *part, config.most_facts)
    return await asker.listed(FACTS, MORE_FACTS, part, schema, "edges", entities=listed)


def _line(entity: Entity) -> str:
    name, *others = entity.names[:ALIASES]
    known = f"{name} ({', '.join(others)})" if others else name
    return f"{known}: {clipped(entity.summary, SHOWN_CHARS)}" if entity.summary else known


def _together(
    asker: Asker, part: Part, ledger: Ledger, ids: Mapping[str, Part]
) -> Iterator[list[Entity]]:
    """The entities that a part of the episode may join: those that it names, and who speaks."""
    first, last = part
    passage = asker.passage
    entities = [ledger.state.entities[each] for each in ids]
    speakers = {key_of(passage.speakers[number - 1]) for number in range(first, last + 1)}
    speaking = [entity for entity in entities if keys_of(entity) & speakers]
    others = [entity for entity in entities if entity not in speaking]
    if len(asker.parts) > 1:
        text = passage.numbered(first, last)
        others = [
            entity
            for entity in others
            if _meet(ids[entity.id], part) or mentions(entity.name, text)
        ]
    for some in batches(others, ENTITIES) or [[]]:
        if len(speaking) + len(some) > 1:
            yield [*speaking, *some]


def _meet(one: Part, other: Part) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _dated(fact: Stated, item: StatedFact) -> Stated:
    """A fact with the times that are given for it; those that cannot be are dropped."""
    at = fact.said_at
    begin = None if says_nothing(item.valid_at) else moment(str(item.valid_at), at)
    end = None if says_nothing(item.invalid_at) else moment(str(item.invalid_at), at, end=True)
    if begin is not None and end is not None and naive(end) < naive(begin):
        end = None
    dropped = (begin is None) != says_nothing(item.valid_at)
    dropped = dropped or (end is None) != says_nothing(item.invalid_at)
    repaired = "time_dropped" if dropped else None
    return replace(fact, valid_at=begin, invalid_at=end, repaired=repaired)
