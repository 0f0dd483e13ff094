"""The entity graph of a document: who and what is in it, how they are related, and where.

Source: HGMem §3.1. Nodes are entities, edges are undirected relations, and each stands on the
chunks that it was extracted from, with the very sentences. The graph is made of its log and never
changes: what a question adds is kept beside it.

Names of one key are one entity: its mentions joined; its different descriptions joined, the first
``DESCRIPTION_CHARS`` of them; its name the spelling that is written most often; its type the one
that is said most often (``UNKNOWN`` only where nothing else is); of equals the first in the text.

Chunks are merged in the order of the text, whatever the order in which they were read; one that
was read once more, after it had failed, at its place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import Final

from mgl.memories.graph.edits import UNKNOWN, GraphLog, NameEntity, RelateEntities
from mgl.memories.graph.names import entity_key
from mgl.types import Span

DESCRIPTION_CHARS: Final = 2000
"""So long a joined description may be; prompts show its first ``entity_tokens``."""


@dataclass(frozen=True, slots=True)
class GraphMention:
    """Where something is said: a chunk's number, and the sentence in it."""

    chunk: int
    span: Span


@dataclass(frozen=True, slots=True)
class GraphEntity:
    """``id`` is the ``entity_key`` of its name; ``description`` is "" for one that only a relation
    names. Mentions are in reading order."""

    id: str
    name: str
    type: str
    description: str
    mentions: tuple[GraphMention, ...]

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunks that it was extracted from, in order."""
        return _chunks(self.mentions)


@dataclass(frozen=True, slots=True)
class Relation:
    """What is said of two entities together; ``source`` <= ``target`` are their ids."""

    id: str
    source: str
    target: str
    description: str
    mentions: tuple[GraphMention, ...]

    @property
    def chunks(self) -> tuple[int, ...]:
        """The chunks that it was extracted from, in order."""
        return _chunks(self.mentions)


def relation_id(one: str, other: str) -> str:
    """The id of the relation of two entities, whichever of them comes first."""
    return "|".join(sorted((one, other)))


@dataclass(frozen=True)
class EntityGraph:
    """Entities and relations by id, in the order in which the document first names them.

    Both ends of every relation are among the entities, and no relation joins one to itself.
    """

    entities: Mapping[str, GraphEntity] = field(default_factory=lambda: MappingProxyType({}))
    relations: Mapping[str, Relation] = field(default_factory=lambda: MappingProxyType({}))

    def neighbours(self, entity_id: str) -> frozenset[str]:
        """The entities that a relation joins to this one (N_G, without itself); none for an
        unknown id."""
        return frozenset(
            relation.target if relation.source == entity_id else relation.source
            for relation in self.relations_of(entity_id)
        )

    def relations_of(self, entity_id: str) -> tuple[Relation, ...]:
        """The relations that an entity is an end of; none for an unknown id."""
        return self._incident.get(entity_id, ())

    @cached_property
    def _incident(self) -> dict[str, tuple[Relation, ...]]:
        found: dict[str, list[Relation]] = defaultdict(list)
        for relation in self.relations.values():
            found[relation.source].append(relation)
            found[relation.target].append(relation)
        return {end: tuple(relations) for end, relations in found.items()}


@dataclass(slots=True)
class _Said:
    """All that is said of one entity or relation; counters keep the order of the first."""

    names: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    texts: dict[str, None] = field(default_factory=dict)
    mentions: dict[GraphMention, None] = field(default_factory=dict)

    def mention(self, edit: NameEntity | RelateEntities, chunk: int) -> None:
        self.mentions[GraphMention(chunk, edit.span)] = None
        if edit.description:
            self.texts[edit.description] = None

    @property
    def in_order(self) -> tuple[GraphMention, ...]:
        return tuple(sorted(self.mentions, key=lambda each: (each.chunk, each.span)))


def make_graph(log: GraphLog) -> EntityGraph:
    """Merge what the chunks of a document tell."""
    entities, relations = defaultdict[str, _Said](_Said), defaultdict[str, _Said](_Said)
    key_of = cache(entity_key)
    for chunk, passage in sorted(log.passages.items()):
        for edit in passage.told:
            if isinstance(edit, NameEntity):
                of = entities[key_of(edit.name)]
                of.names[edit.name] += 1
                of.types[edit.type] += 1
            else:
                of = relations[relation_id(key_of(edit.source), key_of(edit.target))]
            of.mention(edit, chunk)
    return EntityGraph(
        MappingProxyType({each: _make_entity(each, of) for each, of in entities.items()}),
        MappingProxyType({each: _make_relation(each, of) for each, of in relations.items()}),
    )


def _make_entity(identity: str, of: _Said) -> GraphEntity:
    kinds = [kind for kind, _ in of.types.most_common() if kind != UNKNOWN]
    name, kind = of.names.most_common(1)[0][0], kinds[0] if kinds else UNKNOWN
    return GraphEntity(identity, name, kind, _join_descriptions(of.texts), of.in_order)


def _make_relation(identity: str, of: _Said) -> Relation:
    source, target = identity.split("|")
    return Relation(identity, source, target, _join_descriptions(of.texts), of.in_order)


def _join_descriptions(texts: Iterable[str]) -> str:
    """Join the first descriptions; each but the last ends as a sentence."""
    joined = ""
    for text in texts:
        ended = joined if not joined or joined[-1] in ".!?…。" else f"{joined}."
        if joined and len(ended) + 1 + len(text) > DESCRIPTION_CHARS:
            break
        joined = f"{ended} {text}" if ended else text
    return joined


def _chunks(mentions: tuple[GraphMention, ...]) -> tuple[int, ...]:
    return tuple(sorted({mention.chunk for mention in mentions}))
