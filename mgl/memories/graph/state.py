"""The entity graph of a document: who and what is in it, how they are related, and where.

Source: HGMem §3.1. Nodes are entities, edges are undirected relations, and each stands on the
chunks that it was extracted from, with the very sentences. It is made by ``fold`` and
never changes: what a question adds is kept beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from mgl.types import Span

__all__ = ["Entity", "EntityGraph", "Mention", "Relation", "relation_id"]


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


def _chunks(mentions: tuple[Mention, ...]) -> tuple[int, ...]:
    return tuple(sorted({mention.chunk for mention in mentions}))
