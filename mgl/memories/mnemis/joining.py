"""The facts of an episode held against the known ones of the same two entities.

Source: Mnemis §2.1 de-duplicates edges as it does entities. That the model decides among the known
ones that are likest by their embeddings, and that a contradicted fact is closed with the time of
the new one and kept, is our reading. A fact that says letter for letter what is known costs no
call, nor does one that none is like.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import BaseModel

from mgl.memories.mnemis.asking import Asker, Said, batches
from mgl.memories.mnemis.candidates import cosines_of
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.facts import Stated
from mgl.memories.mnemis.ingest_prompts import SAME_FACTS
from mgl.memories.mnemis.ledger import Ledger, naive
from mgl.memories.mnemis.nodes import Fact
from mgl.memories.mnemis.proposals import NONE, Same, same_facts_schema
from mgl.memories.mnemis.state import Close, Repeat, State
from mgl.retrieval.base import Embedder

__all__ = ["join", "known_between"]

_NEW = Same(same=NONE, contradicts=[])


async def join(
    asker: Asker,
    embedder: Embedder,
    ledger: Ledger,
    stated: Sequence[Stated],
    config: MnemisConfig,
) -> None:
    """Put the facts of an episode into the state: as known ones, or as new ones that close what
    they contradict."""
    between = known_between(ledger.state)
    labelled = {f"n{place}": fact for place, fact in enumerate(stated, 1)}
    possible: dict[str, list[Fact]] = {}
    decided: dict[str, tuple[Same, str | None]] = {}
    for label, fact in labelled.items():
        known = between.get(fact.ends, [])
        exact = [other for other in known if other.text.casefold() == fact.text.casefold()]
        if exact:
            decided[label] = Same(same=exact[0].id, contradicts=[]), fact.call_key
        elif known:
            possible[label] = known
    rivals = await _likest(embedder, labelled, possible, config)

    async def one(some: Sequence[str]) -> Said[BaseModel]:
        shown = "\n".join(_shown(label, labelled[label], rivals[label]) for label in some)
        schema = same_facts_schema({label: [each.id for each in rivals[label]] for label in some})
        return await asker.ask(SAME_FACTS, {"facts": shown}, schema, "edge_deduplication")

    for said in await asyncio.gather(*map(one, batches(list(rivals)))):
        if said.proposal is None:
            ledger.fail(said.stage, said.problem)
            continue
        decided |= {label: (verdict, said.call_key) for label, verdict in said.proposal}
    for label, fact in labelled.items():
        verdict, call_key = decided.get(label, (_NEW, None))
        _put(ledger, fact, verdict, call_key)


def known_between(state: State) -> Mapping[frozenset[str], list[Fact]]:
    """The facts of each two entities that any joins, in the order in which they came."""
    between: defaultdict[frozenset[str], list[Fact]] = defaultdict(list)
    for fact in state.facts.values():
        between[frozenset((fact.source, fact.target))].append(fact)
    return between


async def _likest(
    embedder: Embedder,
    labelled: Mapping[str, Stated],
    possible: Mapping[str, Sequence[Fact]],
    config: MnemisConfig,
) -> dict[str, list[Fact]]:
    """For each label at most so many of the facts that it may be like, the likest first; labels
    that none is like are left out."""
    if not possible:
        return {}
    known = list({fact.id: fact for facts in possible.values() for fact in facts}.values())
    places = {fact.id: place for place, fact in enumerate(known)}
    texts = [labelled[label].text for label in possible]
    cosines = await cosines_of(embedder, texts, [fact.text for fact in known])
    found: dict[str, list[Fact]] = {}
    for (label, facts), row in zip(possible.items(), cosines, strict=True):
        like = {fact.id: float(row[places[fact.id]]) for fact in facts}
        near = [fact for fact in facts if like[fact.id] > config.fact_likeness]
        near.sort(key=lambda fact: -like[fact.id])
        if near:
            found[label] = near[: config.candidates]
    return found


def _put(ledger: Ledger, fact: Stated, verdict: Same, call_key: str | None) -> None:
    """A fact that began before one that it contradicts is itself ended by that one."""
    ended = [each for each in dict.fromkeys(verdict.contradicts) if each != verdict.same]
    if verdict.same != NONE:
        ledger.put(Repeat(verdict.same, fact.mention), call_key=call_key)
    else:
        later = _later(ledger.state, fact, ended)
        if later is not None and fact.invalid_at is None:
            fact = replace(fact, invalid_at=later, repaired=fact.repaired or "ended_by_later")
        new = fact.edit(ledger.state.next_id("f"))
        ledger.put(new, repaired=fact.repaired, call_key=fact.call_key)
    for identity in ended:
        _close(ledger, ledger.state.facts[identity], fact, call_key)


def _later(state: State, fact: Stated, contradicted: Sequence[str]) -> datetime | None:
    """When the first that it contradicts began, of those that began after it."""
    if fact.valid_at is None:
        return None
    begins = [state.facts[each].valid_at for each in contradicted]
    begun = naive(fact.valid_at)
    return min((each for each in begins if each and naive(each) > begun), key=naive, default=None)


def _close(ledger: Ledger, known: Fact, by: Stated, call_key: str | None) -> None:
    """Close a fact at the time of what contradicts it: when that began, or else was said."""
    end = by.valid_at or by.said_at
    if end is None:
        ledger.fail(f"close {known.id}", "no time is known", reason="no_time")
        return
    if known.valid_at is not None and naive(end) < naive(known.valid_at):
        if by.valid_at is not None:
            return
        end = known.valid_at
    if known.invalid_at is None or naive(end) < naive(known.invalid_at):
        ledger.put(Close(known.id, end), call_key=call_key)


def _shown(label: str, fact: Stated, rivals: Sequence[Fact]) -> str:
    lines = [f"{label} {fact.text}{_since(fact.valid_at, fact.invalid_at)}"]
    lines += [f"  {each.id} {each.text}{_since(each.valid_at, each.invalid_at)}" for each in rivals]
    return "\n".join(lines)


def _since(begin: datetime | None, end: datetime | None) -> str:
    times = [f"from {begin:%d %B %Y}"] if begin else []
    times += [f"until {end:%d %B %Y}"] if end else []
    return f" ({' '.join(times)})" if times else ""
