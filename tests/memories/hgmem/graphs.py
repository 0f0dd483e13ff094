"""Small entity graphs, and strategies that draw memories over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from mgl.memories.graph.state import Entity, EntityGraph, Mention, Relation, relation_id
from mgl.memories.hgmem.state import (
    EMPTY,
    VOCABULARY,
    AddVertex,
    Edit,
    HypergraphMemory,
    Insert,
    MergePoints,
    UpdatePoint,
    Vertex,
)
from mgl.memories.log import Draft
from mgl.types import Span

NAMES = [f"e{number}" for number in range(8)]


def entity(name: str, *chunks: int) -> Entity:
    mentions = tuple(Mention(chunk, Span("d", chunk, chunk + 1)) for chunk in chunks or (0,))
    return Entity(name, name, "person", f"{name} is somebody", mentions)


def graph_of(
    entities: Mapping[str, Sequence[int]] | Sequence[str], *pairs: tuple[str, str]
) -> EntityGraph:
    """Entities (by name, with their chunks where given) and relations between pairs of them."""
    places = entities if isinstance(entities, Mapping) else dict.fromkeys(entities, (0,))
    relations = {}
    for pair in pairs:
        one, other = sorted(pair)
        key = relation_id(one, other)
        relations[key] = Relation(
            key, one, other, f"{one} knows {other}", (Mention(0, Span("d", 0, 1)),)
        )
    return EntityGraph({name: entity(name, *chunks) for name, chunks in places.items()}, relations)


@st.composite
def logs(draw: st.DrawFn, most: int = 12) -> list[Edit]:
    """A sequence of edits that can be applied one after another."""
    draft = Draft(VOCABULARY, 0, EMPTY)
    log: list[Edit] = []

    def take(edit: Edit) -> None:
        assert draft.put(edit)
        log.append(edit)

    for step in range(draw(st.integers(0, most))):
        memory = draft.state
        points, text = sorted(memory.points), draw(st.text(max_size=8))
        kinds = ["insert", *(["update"] if points else []), *(["merge"] if len(points) > 1 else [])]
        match draw(st.sampled_from(kinds)):
            case "insert":
                held = draw(st.sets(st.sampled_from(NAMES), min_size=2, max_size=4))
                for name in sorted(held - memory.vertices.keys()):
                    new = draw(st.booleans())
                    linked = tuple(sorted(held - {name})) if new else ()
                    take(AddVertex(Vertex(name, name, (0,), new, name, linked)))
                take(Insert(step, memory.next_point, text, tuple(sorted(held))))
            case "update":
                take(UpdatePoint(step, draw(st.sampled_from(points)), text))
            case "merge":
                chosen = draw(st.sets(st.sampled_from(points), min_size=2, max_size=3))
                take(MergePoints(step, memory.next_point, tuple(sorted(chosen)), text))
    return log


def memory_of(*points: Sequence[str]) -> HypergraphMemory:
    """A memory with these points, each by the names of its vertices."""
    draft = Draft(VOCABULARY, 0, EMPTY)
    for held in points:
        for name in held:
            draft.put(AddVertex(Vertex(name, name, (0,))))
        draft.put(Insert(0, draft.state.next_point, "said", tuple(held)))
    return draft.state
