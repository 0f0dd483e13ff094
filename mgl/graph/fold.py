"""From the log to the graph: a pure function of its rows.

Rows of one key are one entity: its mentions joined, its different descriptions joined, its name
the spelling that is written most often, its type the one that is said most often (``UNKNOWN``
only where nothing else is); of equals the first in the text. A ``describe`` row stands in place
of the joined description.

Chunks are folded in the order of the text, whatever the order in which they were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType

from mgl.graph.edits import UNKNOWN
from mgl.graph.names import entity_key
from mgl.graph.state import Entity, EntityGraph, Mention, Relation, relation_id
from mgl.store import EditRecord

__all__ = ["Descriptions", "descriptions", "fold"]

Descriptions = dict[tuple[str, str], list[str]]
"""Different descriptions, in the order of the text, by what they are of: ("entity", its id)."""


@dataclass(slots=True)
class _Gathered:
    """All that is said of one entity or relation; counters keep the order of the first."""

    names: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    said: dict[str, None] = field(default_factory=dict)
    mentions: dict[Mention, None] = field(default_factory=dict)

    def mention(self, row: EditRecord) -> None:
        if row.span is None:
            raise ValueError(f"a row ({row.op}) of chunk {row.chunk} has no span")
        self.mentions[Mention(row.chunk, row.span)] = None
        if text := row.payload["description"]:
            self.said[text] = None


def fold(rows: Iterable[EditRecord]) -> EntityGraph:
    """The graph that a log stands for. ValueError for a row that ``Rows`` does not write: a
    relation that ends in no entity, or in one at both ends."""
    gathered = _gathered(rows)
    entities, relations = {}, {}
    for identity, of in gathered.entities.items():
        kinds = [(kind, n) for kind, n in of.types.most_common() if kind != UNKNOWN]
        entities[identity] = Entity(
            identity,
            name=of.names.most_common(1)[0][0],
            type=kinds[0][0] if kinds else UNKNOWN,
            description=gathered.described.get(("entity", identity), _joined(of.said)),
            mentions=tuple(sorted(of.mentions, key=_place)),
        )
    for identity, of in gathered.relations.items():
        source, target = identity.split("|")
        if source == target or source not in entities or target not in entities:
            raise ValueError(f"relation {identity} does not join two entities")
        relations[identity] = Relation(
            identity,
            source,
            target,
            description=gathered.described.get(("relation", identity), _joined(of.said)),
            mentions=tuple(sorted(of.mentions, key=_place)),
        )
    return EntityGraph(MappingProxyType(entities), MappingProxyType(relations))


def descriptions(rows: Iterable[EditRecord]) -> Descriptions:
    """What is said of each that more than one thing is said of."""
    gathered = _gathered(rows)
    kinds = (("entity", gathered.entities), ("relation", gathered.relations))
    return {
        (kind, identity): list(of.said)
        for kind, found in kinds
        for identity, of in found.items()
        if len(of.said) > 1
    }


@dataclass(frozen=True, slots=True)
class _All:
    entities: dict[str, _Gathered]
    relations: dict[str, _Gathered]
    described: dict[tuple[str, str], str]


def _gathered(rows: Iterable[EditRecord]) -> _All:
    found = _All({}, {}, {})
    for row in sorted(rows, key=lambda row: row.chunk):
        if row.outcome == "rejected":
            continue
        said = row.payload
        match row.op:
            case "entity":
                of = found.entities.setdefault(entity_key(said["name"]), _Gathered())
                of.mention(row)
                of.names[said["name"]] += 1
                of.types[said["type"]] += 1
            case "relation":
                ends = entity_key(said["source"]), entity_key(said["target"])
                found.relations.setdefault(relation_id(*ends), _Gathered()).mention(row)
            case "describe":
                found.described[said["of"], said["id"]] = said["description"]
    return found


def _joined(said: Iterable[str]) -> str:
    """Descriptions as one text: each ends as a sentence where another follows."""
    *before, last = list(said) or [""]
    ended = (text if text[-1] in ".!?…。" else f"{text}." for text in before)
    return " ".join((*ended, last))


def _place(mention: Mention) -> tuple[int, int, int]:
    return mention.chunk, mention.span.start, mention.span.end
