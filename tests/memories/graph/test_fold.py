"""The fold: merging, and that the order in which chunks were read decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.graph.edits import UNKNOWN, VOCABULARY
from mgl.memories.graph.state import EntityGraph, make_graph
from mgl.store import EditRecord
from mgl.types import Span

NAMES = ("Ann", "ann", "The Bo", "BO", "Bo", "Cyd", "Dee")


def fold(rows: Iterable[EditRecord]) -> EntityGraph:
    """The graph of what chunks tell, in whatever order they were read."""
    rows = list(rows)
    begun = {row.chunk for row in rows if row.op in ("chunk", "again")}
    chunks = [chunk_row(number) for number in {row.chunk for row in rows} - begun]
    return make_graph(VOCABULARY.replay(sorted([*chunks, *rows], key=lambda row: row.chunk)))


def chunk_row(chunk: int) -> EditRecord:
    span = Span("d", chunk, chunk + 2)
    return EditRecord(chunk, "chunk", {"tokens": 2}, "applied", span=span)


def entity_row(chunk: int, name: str, kind: str = "person", text: str = "x") -> EditRecord:
    payload = {"name": name, "type": kind, "description": text}
    return EditRecord(chunk, "entity", payload, "applied", span=Span("d", chunk, chunk + 2))


def relation_row(chunk: int, source: str, target: str, text: str = "met") -> EditRecord:
    payload = {"source": source, "target": target, "description": text}
    return EditRecord(chunk, "relation", payload, "applied", span=Span("d", chunk, chunk + 2))


def test_one_key_is_one_entity() -> None:
    graph = fold(
        [
            entity_row(0, "bo", "place", "A sailor"),
            entity_row(1, "The Bo", "person", "A husband."),
            entity_row(2, "The Bo", "person", "A sailor"),
            entity_row(2, "Bo", UNKNOWN, ""),
        ]
    )
    (bo,) = graph.entities.values()
    assert (bo.id, bo.name, bo.type) == ("bo", "The Bo", "person")
    assert bo.description == "A sailor. A husband."
    assert bo.chunks == (0, 1, 2)
    assert len(bo.mentions) == 3


def test_ties_go_to_the_first_in_the_text() -> None:
    rows = [entity_row(3, "BO", "place"), entity_row(1, "Bo", "person")]
    (bo,) = fold(rows).entities.values()
    assert (bo.name, bo.type) == ("Bo", "person")


def test_relations_are_undirected() -> None:
    ends = [entity_row(chunk, name) for chunk in (0, 5) for name in ("Ann", "Bo")]
    rows = [relation_row(0, "Bo", "Ann", "gave"), relation_row(5, "Ann", "the Bo", "lost")]
    (one,) = fold([*ends, *rows]).relations.values()
    assert (one.id, one.source, one.target) == ("ann|bo", "ann", "bo")
    assert one.description == "gave. lost"
    assert one.chunks == (0, 5)
    graph = fold([*ends, *rows])
    assert (graph.neighbours("bo"), graph.neighbours("nobody")) == ({"ann"}, frozenset())


def test_of_many_descriptions_the_first_are_kept() -> None:
    texts = [f"{number} " + "x" * 600 for number in range(5)]
    (ann,) = fold(
        [entity_row(n, "Ann", text=text) for n, text in enumerate(texts)]
    ).entities.values()
    assert ann.description == ". ".join(texts[:3])
    assert len(ann.mentions) == 5


names = st.sampled_from(NAMES)
texts = st.sampled_from(("", "one", "two.", "three"))
kinds = st.sampled_from(("person", "place", UNKNOWN))


@st.composite
def chunk_rows(draw: st.DrawFn) -> list[tuple[Any, ...]]:
    pairs = draw(st.lists(st.tuples(names, names), max_size=3))
    found = draw(st.lists(st.tuples(names, kinds, texts), max_size=4))
    ends = [(end, draw(kinds), draw(texts)) for pair in pairs for end in pair]
    joined = [pair for pair in pairs if pair[0][-1:].lower() != pair[1][-1:].lower()]
    return [*found, *ends, *joined]


def rows_of(number: int, said: list[tuple[Any, ...]]) -> list[EditRecord]:
    return [
        entity_row(number, *row) if len(row) == 3 else relation_row(number, *row) for row in said
    ]


@given(st.lists(chunk_rows(), max_size=6), st.randoms())
def test_two_orders_of_completion_give_the_same_graph(
    chunks: list[list[tuple[Any, ...]]], random: Any
) -> None:
    steps = [rows_of(number, said) for number, said in enumerate(chunks)]
    shuffled = list(steps)
    random.shuffle(shuffled)
    one = fold(row for step in steps for row in step)
    other = fold(row for step in shuffled for row in step)
    assert one == other
    assert list(one.entities) == list(other.entities)
    assert list(one.relations) == list(other.relations)
    for relation in one.relations.values():
        assert relation.target in one.neighbours(relation.source)
        assert relation.source in one.neighbours(relation.target)
