"""The entities of an episode: named, held against those that are known, and described.

Source: Mnemis §2.1. A name that some entity has already, in any spelling that ``entity_key``
levels, is that entity, and costs no call. For others the model decides among the likely ones.
Who speaks in an episode is always an entity of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import BaseModel

from mgl.memories.graph.names import mentions
from mgl.memories.mnemis.asking import Asker, Part, Said, batches, clipped
from mgl.memories.mnemis.candidates import alike, candidates
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.ingest_prompts import MORE_NAMES, NAMES, SAME_ENTITIES, SUMMARIES
from mgl.memories.mnemis.ledger import Ledger
from mgl.memories.mnemis.naming import Cleaned, by_key, cleaned, is_said, key_of, keys_of
from mgl.memories.mnemis.nodes import Entity, Mention
from mgl.memories.mnemis.proposals import (
    NEW,
    Names,
    names_schema,
    same_entities_schema,
    summaries_schema,
)
from mgl.memories.mnemis.state import AddEntity, Describe, Repeat
from mgl.retrieval.base import Embedder

__all__ = ["Found", "Named", "ask_names", "describe", "find", "settle"]

MOST_SUMMARY_CHARS, MOST_TAG_CHARS, SHOWN_CHARS = 600, 40, 300
_EARLIER: Final = 2

Named = Sequence[Sequence[Said[Names]]]
"""Replies about the parts of an episode: a list of names, and what reflection adds to it."""


@dataclass(frozen=True, slots=True)
class Found:
    """A name in an episode: the sentences that it stands in, first and last, and how it came to
    be."""

    name: str
    at: Part
    repaired: str | None = None
    call_key: str | None = None

    @property
    def key(self) -> str:
        return key_of(self.name)


async def ask_names(asker: Asker, config: MnemisConfig) -> Named:
    """What a model names in each part of an episode."""
    return await asyncio.gather(*(_named(asker, part, config) for part in asker.parts))


def find(asker: Asker, ledger: Ledger, number: int, replies: Named) -> list[Found]:
    """The names of an episode, each once: its speakers, then what the model named."""
    found: dict[str, Found] = {}
    for speaker in _speakers(asker):
        found.setdefault(speaker.key, speaker)
    asked = zip(asker.parts, replies, strict=True)
    for part, said in ((part, said) for part, made in asked for said in made):
        if said.proposal is None:
            ledger.fail(said.stage, said.problem)
            continue
        for name in said.proposal.entities:
            one = _checked(asker, part, name)
            if one.rejected is not None:
                edit = AddEntity("", one.name, Mention(number, asker.passage.span(*part)))
                ledger.put(edit, rejected=one.rejected, call_key=said.call_key)
                continue
            at, repaired = _placed(asker, part, one.name)
            each = Found(one.name, at, one.repaired or repaired, said.call_key)
            found.setdefault(each.key, each)
    return list(found.values())


async def settle(
    asker: Asker,
    embedder: Embedder,
    ledger: Ledger,
    number: int,
    found: Sequence[Found],
    config: MnemisConfig,
    *,
    speakers: frozenset[str],
) -> dict[str, Part]:
    """Put the names into the state: as known entities, or as new ones.

    Gives the ids of the episode's entities, each with the sentences that it is named in.
    ``speakers`` are keys of all who spoke so far: none is another one.
    """
    known = by_key(ledger.state)
    unknown = {f"n{place}": each for place, each in enumerate(found, 1) if each.key not in known}
    same = await _decided(asker, embedder, ledger, unknown, config, speakers)
    labels = {each.key: label for label, each in unknown.items()}
    ids: dict[str, Part] = {}
    placed: dict[str, str] = {}
    for each in found:
        mention = Mention(number, asker.passage.span(*each.at))
        label = labels.get(each.key, "")
        target, call_key = same.get(label, (NEW, each.call_key))
        if each.key in known:
            identity = known[each.key]
            ledger.put(Repeat(identity, mention), repaired=each.repaired, call_key=call_key)
        elif target != NEW:
            identity = placed.get(target, target)
            edit = Repeat(identity, mention, each.name)
            ledger.put(edit, repaired=each.repaired, call_key=call_key)
        else:
            identity = ledger.state.next_id("e")
            new = AddEntity(identity, each.name, mention)
            ledger.put(new, repaired=each.repaired, call_key=each.call_key)
        placed[label] = identity
        ids.setdefault(identity, each.at)
    return ids


async def describe(asker: Asker, ledger: Ledger, ids: Sequence[str]) -> None:
    """Summary and tags of entities, from the episode and what was known of them before."""
    sentences, text = len(asker.passage.sentences), asker.passage.numbered()

    async def one(some: Sequence[str]) -> Said[BaseModel]:
        entities = "\n".join(_known(ledger.state.entities[each]) for each in some)
        values = {"episode": text, "entities": entities}
        return await asker.ask(
            SUMMARIES, values, summaries_schema(some, sentences), "entity_summaries"
        )

    for said in await asyncio.gather(*map(one, batches(ids))):
        if said.proposal is None:
            ledger.fail(said.stage, said.problem)
            continue
        for identity, summary in said.proposal:
            line = clipped(summary.summary, MOST_SUMMARY_CHARS)
            tags = dict.fromkeys(clipped(tag, MOST_TAG_CHARS) for tag in summary.tags)
            edit = Describe(identity, line, tuple(tag for tag in tags if tag))
            span = asker.passage.span(summary.src)
            ledger.put(edit, rejected=None if line else "empty", call_key=said.call_key, span=span)


async def _named(asker: Asker, part: Part, config: MnemisConfig) -> list[Said[Names]]:
    schema = names_schema(config.most_entities)
    return await asker.listed(NAMES, MORE_NAMES, part, schema, "entities")


async def _decided(
    asker: Asker,
    embedder: Embedder,
    ledger: Ledger,
    unknown: Mapping[str, Found],
    config: MnemisConfig,
    speakers: frozenset[str],
) -> dict[str, tuple[str, str | None]]:
    """For each label what its name stands for, where there was anything to decide: the id of an
    entity, the label of a name before it, or ``new``; and the key of the call."""
    entities = list(ledger.state.entities.values())
    labels, names = list(unknown), [each.name for each in unknown.values()]
    told = {entity.id: (entity.name, entity.summary) for entity in entities}
    told |= {label: (each.name, "") for label, each in unknown.items()}
    speaking = {entity.id for entity in entities if keys_of(entity) & speakers}
    speaking |= {label for label, each in unknown.items() if each.key in speakers}
    likely: dict[str, list[str]] = {}
    for label, among, before in zip(
        labels,
        await candidates(embedder, names, entities, config.candidates),
        await alike(embedder, names, _EARLIER),
        strict=True,
    ):
        apart = speaking if label in speaking else set()
        chosen = [each for each in [*among, *(labels[b] for b in before)] if each not in apart]
        if chosen:
            likely[label] = chosen

    async def one(some: Sequence[str]) -> Said[BaseModel]:
        lines = []
        for label in some:
            each = unknown[label]
            sentence = clipped(asker.passage.quote(each.at[0]), SHOWN_CHARS)
            lines.append(f'{label} "{each.name}" in: {sentence}')
            lines += [f"  {other} {_line(*told[other])}" for other in likely[label]]
        schema = same_entities_schema({label: likely[label] for label in some})
        values = {"names": "\n".join(lines)}
        return await asker.ask(SAME_ENTITIES, values, schema, "entity_deduplication")

    decided: dict[str, tuple[str, str | None]] = {}
    for said in await asyncio.gather(*map(one, batches(list(likely)))):
        if said.proposal is None:
            ledger.fail(said.stage, said.problem)
            continue
        decided |= {label: (target, said.call_key) for label, target in said.proposal}
    return decided


def _speakers(asker: Asker) -> Iterator[Found]:
    for src, speaker in enumerate(asker.passage.speakers, 1):
        name = cleaned(speaker, speaker)
        if name.rejected is None:
            yield Found(name.name, (src, src))


def _checked(asker: Asker, part: Part, said: str) -> Cleaned:
    speakers = set(asker.passage.speakers[part[0] - 1 : part[1]])
    name = cleaned(said, speakers.pop() if len(speakers) == 1 else "")
    if name.rejected is None and not is_said(name.name, asker.said):
        return replace(name, rejected="not_said")
    return name


def _placed(asker: Asker, part: Part, name: str) -> tuple[Part, str | None]:
    """The sentence of a part that has a name, or else most of its words; where none has any, as of
    a name that only the context tells, the whole part."""
    first, last = part
    quotes = {number: asker.passage.quote(number) for number in range(first, last + 1)}
    for number, quote in quotes.items():
        if mentions(name, quote):
            return (number, number), None
    words = set(key_of(name).split())
    shared = {n: len(words & set(key_of(quote).split())) for n, quote in quotes.items()}
    best = max(shared, key=lambda n: shared[n])
    return ((best, best), "sentence_guessed") if shared[best] else (part, "no_sentence")


def _line(name: str, summary: str) -> str:
    return f"{name}: {clipped(summary, SHOWN_CHARS)}" if summary else name


def _known(entity: Entity) -> str:
    return f"{entity.id} {_line(entity.name, entity.summary)}"
