"""How a proposal becomes edits: names to vertices, points that are there, merges that can be.

Source: HGMem §3.5. What cannot be applied is logged with its reason and changes nothing:

    too_few_vertices   a new point whose names are of fewer than two entities
    duplicate_point    one with the vertices and the words of a point that is there
    unchanged          an update that says what was said
    unknown_point      an update or a merge of a point that is not there
    overlapping        a merge of points of which fewer than two are left by an earlier merge
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgl.memories.graph import EntityGraph, entity_key
from mgl.memories.graph.names import clean_name, mentions
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.edits import Failed, Retrieve, record
from mgl.memories.hgmem.proposals import Evolution, Merges, NewPoint, PointUpdate
from mgl.memories.hgmem.state import (
    AddVertex,
    Edit,
    Insert,
    Memory,
    Merge,
    Update,
    Vertex,
    apply,
)
from mgl.prompt import one_line
from mgl.store import EditRecord
from mgl.types import Chunk

__all__ = ["Evolver"]


@dataclass
class Evolver:
    """The memory as it changes within a step, and the rows that say how."""

    memory: Memory
    step: int
    graph: EntityGraph
    chunks: Sequence[Chunk]
    config: HgMemConfig

    def __post_init__(self) -> None:
        self.rows: list[EditRecord] = []

    def evolve(self, evolution: Evolution, found: Sequence[Retrieve], call_key: str | None) -> None:
        """Update, then insert (§3.5); places are those of the memory as it was shown."""
        numbers = list(self.memory.points)
        seen = sorted({number for one in found for number in one.chunks})
        if self.config.update:
            for update in evolution.updated:
                self._update(update, numbers, seen, call_key)
        for point in evolution.inserted:
            self._insert(point, seen, call_key)

    def merge(self, merges: Merges, call_key: str | None) -> None:
        """Merge points (Eq. 8). One that an earlier merge of the reply took is left out of the
        next, which is made where two others are left."""
        numbers = list(self.memory.points)
        for proposal in merges.merges:
            asked = dict.fromkeys(
                numbers[place] for place in proposal.points if place < len(numbers)
            )
            left = tuple(number for number in asked if number in self.memory.points)
            edit = Merge(
                self.memory.next_point,
                left,
                one_line(proposal.description),
                kept=self.config.released,
            )
            if len(left) < 2:
                reason = "overlapping" if len(asked) > 1 else "unknown_point"
                self._reject(edit, reason, call_key)
            else:
                repaired = "overlapping" if len(left) < len(asked) else None
                self._apply(edit, call_key, repaired)

    def fail(self, what: str, problem: str) -> None:
        """A reply of this step could not be used: the memory stays as it is."""
        self.rows.append(record(self.step, Failed(what, problem), rejected="reply_invalid"))

    def _update(
        self,
        update: PointUpdate,
        numbers: Sequence[int],
        seen: Sequence[int],
        call_key: str | None,
    ) -> None:
        said = one_line(update.description)
        if not 0 <= update.point < len(numbers):
            self._reject(Update(update.point, said), "unknown_point", call_key)
            return
        number = numbers[update.point]
        vertices = None
        if self.config.released:
            new = self._vertices(update.objects, said, seen)
            vertices = tuple(vertex.id for vertex in new) if len(new) > 1 else None
            if vertices is not None:
                self._add(new, call_key)
        point = self.memory.points[number]
        if said == point.description and vertices in (None, tuple(sorted(point.vertices))):
            self._reject(Update(number, said), "unchanged", call_key)
        else:
            self._apply(Update(number, said, vertices), call_key)

    def _insert(self, point: NewPoint, seen: Sequence[int], call_key: str | None) -> None:
        said = one_line(point.description)
        vertices = self._vertices(point.objects, said, seen)
        held = tuple(vertex.id for vertex in vertices)
        edit = Insert(self.memory.next_point, said, held)
        there = self.memory.points.values()
        if len(held) < 2:
            self._reject(edit, "too_few_vertices", call_key)
        elif any(each.vertices == set(held) and each.description == said for each in there):
            self._reject(edit, "duplicate_point", call_key)
        else:
            self._add(vertices, call_key)
            self._apply(edit, call_key)

    def _vertices(self, names: Sequence[str], said: str, seen: Sequence[int]) -> list[Vertex]:
        """One vertex for each entity that is named, in the order of their ids; one that neither
        graph nor memory has is made, and linked to the others."""
        named: dict[str, str] = {}
        for name in names:
            named.setdefault(entity_key(name), clean_name(name))
        named.pop("", None)
        return [
            self._vertex(key, named[key], said, tuple(sorted(named.keys() - {key})), seen)
            for key in sorted(named)
        ]

    def _vertex(
        self, key: str, name: str, said: str, others: tuple[str, ...], seen: Sequence[int]
    ) -> Vertex:
        if key in self.memory.vertices:
            return self.memory.vertices[key]
        known = self.graph.entities.get(key)
        if known is not None:
            return Vertex(key, known.name, known.chunks)
        holding = tuple(number for number in seen if mentions(name, self.chunks[number].text))
        return Vertex(key, name, holding or tuple(seen), True, said, others)

    def _add(self, vertices: Sequence[Vertex], call_key: str | None) -> None:
        for vertex in vertices:
            if vertex.id not in self.memory.vertices:
                self._apply(AddVertex(vertex), call_key)

    def _apply(self, edit: Edit, call_key: str | None, repaired: str | None = None) -> None:
        self.memory = apply(self.memory, edit, self.step)
        self.rows.append(record(self.step, edit, repaired=repaired, call_key=call_key))

    def _reject(self, edit: Edit, reason: str, call_key: str | None) -> None:
        self.rows.append(record(self.step, edit, rejected=reason, call_key=call_key))
