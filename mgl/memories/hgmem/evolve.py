"""How a proposal becomes edits: names become vertices, places become points.

Source: HGMem §3.5. What cannot be applied is logged with its reason and changes nothing:

    too_few_vertices   a new point whose names are of fewer than two entities
    duplicate_point    one with the vertices and the words of an existing point
    unchanged          an update that changes nothing
    unknown_point      an update or a merge of a point that does not exist
    repeated           a merge of the same points as an earlier one of the reply
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mgl.memories.graph import entity_key
from mgl.memories.graph.names import clean_name, mentions
from mgl.memories.hgmem.evidence import Inquiry
from mgl.memories.hgmem.proposals import Evolution, Merges, NewPoint, PointUpdate
from mgl.memories.hgmem.state import (
    AddVertex,
    Edit,
    HypergraphMemory,
    Insert,
    MergePoints,
    Retrieve,
    UpdatePoint,
    Vertex,
)
from mgl.memories.log import Draft
from mgl.prompt import one_line


@dataclass(frozen=True, slots=True)
class Evolver:
    """Puts what a reply proposes into the draft of its step."""

    draft: Draft[Edit, HypergraphMemory]
    inquiry: Inquiry

    @property
    def memory(self) -> HypergraphMemory:
        """The memory as this step has changed it so far."""
        return self.draft.state

    def evolve(self, evolution: Evolution, found: Sequence[Retrieve], call_key: str | None) -> None:
        """Update, then insert (§3.5); places count in the memory as the model saw it."""
        numbers = list(self.memory.points)
        seen = sorted({number for one in found for number in one.chunks})
        if self.inquiry.config.update:
            for update in evolution.updated:
                self._update(update, numbers, seen, call_key)
        for point in evolution.inserted:
            self._insert(point, seen, call_key)

    def merge(self, merges: Merges, call_key: str | None) -> None:
        """Merge points (Eq. 8). All merges are of the points as they were shown, also those that
        share some (Fig. 5): a point goes with the last merge that takes it."""
        numbers, kept = list(self.memory.points), self.inquiry.config.released
        named = [
            tuple(dict.fromkeys(numbers[place] for place in each.points if place < len(numbers)))
            for each in merges.merges
        ]
        first: dict[frozenset[int], int] = {}
        for place, parents in enumerate(named):
            if len(parents) > 1:
                first.setdefault(frozenset(parents), place)
        for place, (proposal, parents) in enumerate(zip(merges.merges, named, strict=True)):
            later = {number for held, at in first.items() if at > place for number in held}
            said, stay = one_line(proposal.description), tuple(n for n in parents if n in later)
            edit = MergePoints(self.draft.step, self.memory.next_point, parents, said, kept, stay)
            rejected = None
            if len(parents) < 2:
                rejected = "unknown_point"
            elif first[frozenset(parents)] != place:
                rejected = "repeated"
            self.draft.put(edit, rejected=rejected, call_key=call_key)

    def _update(
        self,
        update: PointUpdate,
        numbers: Sequence[int],
        seen: Sequence[int],
        call_key: str | None,
    ) -> None:
        said, step = one_line(update.description), self.draft.step
        if not 0 <= update.point < len(numbers):
            edit = UpdatePoint(step, update.point, said)
            self.draft.put(edit, rejected="unknown_point", call_key=call_key)
            return
        number, vertices = numbers[update.point], None
        if self.inquiry.config.released:
            new = self._find_vertices(update.objects, said, seen)
            if len(new) > 1:
                vertices = tuple(vertex.id for vertex in new)
                self._add_vertices(new, call_key)
        point = self.memory.points[number]
        if said == point.description and vertices in (None, tuple(sorted(point.vertices))):
            self.draft.put(UpdatePoint(step, number, said), rejected="unchanged", call_key=call_key)
        else:
            self.draft.put(UpdatePoint(step, number, said, vertices), call_key=call_key)

    def _insert(self, point: NewPoint, seen: Sequence[int], call_key: str | None) -> None:
        said = one_line(point.description)
        vertices = self._find_vertices(point.objects, said, seen)
        held = tuple(vertex.id for vertex in vertices)
        known = self.memory.points.values()
        rejected = None
        if len(held) < 2:
            rejected = "too_few_vertices"
        elif any(each.vertices == set(held) and each.description == said for each in known):
            rejected = "duplicate_point"
        else:
            self._add_vertices(vertices, call_key)
        edit = Insert(self.draft.step, self.memory.next_point, said, held)
        self.draft.put(edit, rejected=rejected, call_key=call_key)

    def _find_vertices(self, names: Sequence[str], said: str, seen: Sequence[int]) -> list[Vertex]:
        """One vertex for each entity named, ordered by id; an entity that neither graph nor memory
        has is created and linked to the others."""
        named: dict[str, str] = {}
        for name in names:
            named.setdefault(entity_key(name), clean_name(name))
        named.pop("", None)
        found = []
        for key in sorted(named):
            vertex = self.memory.vertices.get(key)
            if vertex is None and (known := self.inquiry.graph.entities.get(key)) is not None:
                vertex = Vertex(key, known.name, known.chunks, description=known.description)
            if vertex is None:
                name, texts = named[key], self.inquiry.chunks
                holding = tuple(number for number in seen if mentions(name, texts[number].text))
                linked = tuple(sorted(named.keys() - {key}))
                vertex = Vertex(key, name, holding or tuple(seen), True, said, linked)
            found.append(vertex)
        return found

    def _add_vertices(self, vertices: Sequence[Vertex], call_key: str | None) -> None:
        for vertex in vertices:
            if vertex.id not in self.memory.vertices:
                self.draft.put(AddVertex(vertex), call_key=call_key)
