"""The entity graph of a document: who and what is in it, how they are related, and where.

Source: HGMem §3.1. Nodes are entities, edges are undirected relations, and each stands on the
chunks that it was extracted from, with the very sentences. The graph is ``fold``ed from the rows of
its log and never changes: what a question adds is kept beside it.

Rows of one key are one entity: its mentions joined, its different descriptions joined, its name
the spelling that is written most often, its type the one that is said most often (``UNKNOWN``
only where nothing else is); of equals the first in the text. A ``describe`` row stands in place
of the joined description; the last of a key holds, also where it says that the summary failed.

Chunks are folded in the order of the text, whatever the order in which they were read; one that
was read once more, after it had failed, at its place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import itemgetter
from types import MappingProxyType
from typing import Literal

from mgl.memories.graph.edits import UNKNOWN
from mgl.memories.graph.names import entity_key
from mgl.memories.log import find_read_again
from mgl.store import EditRecord
from mgl.types import Span

__all__ = [
    "Entity",
    "EntityGraph",
    "Gathered",
    "Kind",
    "Mention",
    "Relation",
    "fold",
    "gather",
    "join_descriptions",
    "relation_id",
]


@dataclass(frozen=True, slots=True)
class Mention:
    """Where something is said: a chunk's number, and the sentence in it."""

    chunk: int
    span: Span


@dataclass(frozen=True, slots=True)
class Entity:
    """``id`` is the ``entity_key`` of its name; ``description`` is "" where nothing is said of it
    but a relation. Mentions are in reading order."""

    id: str
    name: str
    type: str
    description: str
    mentions: tuple[Mention, ...]

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
    mentions: tuple[Mention, ...]

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

    entities: Mapping[str, Entity] = field(default_factory=lambda: MappingProxyType({}))
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


Kind = Literal["entity", "relation"]


@dataclass(slots=True)
class _Said:
    """All that is said of one entity or relation; counters keep the order of the first."""

    names: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    texts: dict[str, None] = field(default_factory=dict)
    mentions: dict[Mention, None] = field(default_factory=dict)

    def mention(self, row: EditRecord, chunk: int) -> None:
        if row.span is not None:
            self.mentions[Mention(chunk, row.span)] = None
        if text := row.payload["description"]:
            self.texts[text] = None

    @property
    def in_order(self) -> tuple[Mention, ...]:
        return tuple(sorted(self.mentions, key=lambda each: (each.chunk, each.span)))


@dataclass(frozen=True, slots=True)
class Gathered:
    """What a log says of each entity and relation, before it is made one."""

    entities: defaultdict[str, _Said]
    relations: defaultdict[str, _Said]
    described: dict[tuple[Kind, str], str]

    def all(self) -> Iterator[tuple[tuple[Kind, str], _Said]]:
        """What is said of each entity, then of each relation."""
        yield from ((("entity", identity), of) for identity, of in self.entities.items())
        yield from ((("relation", identity), of) for identity, of in self.relations.items())

    def several(self) -> dict[tuple[Kind, str], list[str]]:
        """The different descriptions, in the order of the text, of each that has more than one."""
        return {key: list(of.texts) for key, of in self.all() if len(of.texts) > 1}

    def name(self, kind: Kind, identity: str) -> str:
        """What an entity, or the two of a relation, are called."""
        ends = [identity] if kind == "entity" else identity.split("|")
        return " and ".join(self.entities[end].names.most_common(1)[0][0] for end in ends)

    def graph(self) -> EntityGraph:
        """The graph that all of it makes."""
        entities, relations = {}, {}
        for identity, of in self.entities.items():
            kinds = [kind for kind, _ in of.types.most_common() if kind != UNKNOWN]
            entities[identity] = Entity(
                identity,
                name=self.name("entity", identity),
                type=kinds[0] if kinds else UNKNOWN,
                description=self._description("entity", identity, of),
                mentions=of.in_order,
            )
        for identity, of in self.relations.items():
            source, target = identity.split("|")
            text = self._description("relation", identity, of)
            relations[identity] = Relation(identity, source, target, text, of.in_order)
        return EntityGraph(MappingProxyType(entities), MappingProxyType(relations))

    def _description(self, kind: Kind, identity: str, of: _Said) -> str:
        return self.described.get((kind, identity)) or join_descriptions(of.texts)


def fold(rows: Iterable[EditRecord]) -> EntityGraph:
    """The graph that a log stands for."""
    return gather(rows).graph()


def gather(rows: Iterable[EditRecord]) -> Gathered:
    """What rows say, those of one key together; rejected ones say nothing."""
    found = Gathered(defaultdict(_Said), defaultdict(_Said), {})
    key_of, rows = cache(entity_key), list(rows)
    again = find_read_again(rows)
    placed = ((again.get(row.chunk, row.chunk), row) for row in rows)
    for chunk, row in sorted(placed, key=itemgetter(0)):
        said = row.payload
        if row.outcome == "rejected":
            if row.op == "describe":
                found.described.pop((said["of"], said["id"]), None)
            continue
        match row.op:
            case "entity":
                of = found.entities[key_of(said["name"])]
                of.mention(row, chunk)
                of.names[said["name"]] += 1
                of.types[said["type"]] += 1
            case "relation":
                identity = relation_id(key_of(said["source"]), key_of(said["target"]))
                found.relations[identity].mention(row, chunk)
            case "describe":
                found.described[said["of"], said["id"]] = said["description"]
    return found


def join_descriptions(texts: Iterable[str]) -> str:
    """Descriptions as one text: each ends as a sentence where another follows."""
    *before, last = list(texts) or [""]
    ended = (text if text[-1] in ".!?…。" else f"{text}." for text in before)
    return " ".join((*ended, last))


def _chunks(mentions: tuple[Mention, ...]) -> tuple[int, ...]:
    return tuple(sorted({mention.chunk for mention in mentions}))
