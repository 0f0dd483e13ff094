"""How proposals become edits, and what becomes of those that cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mgl.llm.calls import MemoryCallLog
from mgl.llm.client import Client
from mgl.llm.fakes import ScriptedEngine
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.delimiters import parse_merges
from mgl.memories.hgmem.evidence import Inquiry
from mgl.memories.hgmem.evolve import Evolver
from mgl.memories.hgmem.proposals import (
    Evolution,
    Merges,
    NewPoint,
    PointUpdate,
    ProposedMerge,
    merges_schema,
)
from mgl.memories.hgmem.state import EMPTY, VOCABULARY, HypergraphMemory, Retrieve
from mgl.memories.log import Draft
from mgl.types import Chunk, Question, Span
from tests.memories.hgmem.graphs import NAMES, graph_of, memory_of

TEXTS = ["Xodar bowed to Issus.", "Carter had a plan of his own.", "Phaidor laughed."]
CHUNKS = [Chunk(n, Span("d", n * 50, n * 50 + len(t)), t, 5) for n, t in enumerate(TEXTS)]
FOUND = [Retrieve("q", 3, ("xodar",), (), (0, 1))]


def evolver(
    memory: HypergraphMemory = EMPTY,
    entities: Sequence[str] = ("xodar", "issus", "carter"),
    step: int = 1,
    **config: Any,
) -> Evolver:
    options = HgMemConfig.model_validate(config)
    llm = Client(ScriptedEngine([]), MemoryCallLog())
    inquiry = Inquiry(llm, Question("Why?"), graph_of(entities), CHUNKS, options)
    return Evolver(Draft(VOCABULARY, step, memory), inquiry)


def inserted(*points: tuple[Sequence[str], str]) -> Evolution:
    return Evolution(
        inserted=[NewPoint(objects=list(names), description=said) for names, said in points]
    )


def outcomes(made: Evolver) -> list[tuple[str, str, str | None]]:
    return [(row.op, row.outcome, row.reason) for row in made.draft.rows]


def test_names_are_the_entities_of_the_graph_however_they_are_spelt() -> None:
    made = evolver()
    made.evolve(inserted((["The XODAR", "“Issus”"], "He is punished.")), FOUND, "k")
    assert made.memory.points[0].vertices == {"xodar", "issus"}
    assert made.memory.hypergraph.v("issus")["description"] == "issus is somebody"
    assert not any(vertex.new for vertex in made.memory.vertices.values())
    assert {row.call_key for row in made.draft.rows} == {"k"}


def test_an_entity_that_is_missing_is_this_questions_own() -> None:
    made = evolver()
    made.evolve(inserted((["Xodar", "plan"], "A plan against him.")), FOUND, None)
    plan = made.memory.vertices["plan"]
    assert (plan.new, plan.linked, plan.chunks) == (True, ("xodar",), (1,))
    assert plan.description == "A plan against him."
    assert "plan" not in made.inquiry.graph.entities


def test_one_that_no_chunk_names_is_tied_to_all_that_were_shown() -> None:
    made = evolver()
    made.evolve(inserted((["Xodar", "cowardly injustice"], "…")), FOUND, None)
    assert made.memory.vertices["cowardly injustice"].chunks == (0, 1)


def test_a_point_needs_two_entities_and_is_inserted_once() -> None:
    made = evolver()
    odd = ['"Xodar"\n<|>', "x" * 10_000, "Issus##"]
    points = [(odd, "said\nin\ttwo lines")] * 2 + [(["Xodar", "the Xodar"], "he"), (["…", "?"], "")]
    made.evolve(
        Evolution.model_construct(
            inserted=[
                NewPoint.model_construct(objects=names, description=said) for names, said in points
            ]
        ),
        FOUND,
        None,
    )
    (point,) = made.memory.points.values()
    assert {"xodar", "issus"} <= point.vertices
    assert point.description == "said in two lines"
    assert all("\n" not in vertex.name for vertex in made.memory.vertices.values())
    assert [row.reason for row in made.draft.rows if row.op == "insert"] == [
        None,
        "duplicate_point",
        "too_few_vertices",
        "too_few_vertices",
    ]


def test_updates_are_of_the_points_as_they_were_shown() -> None:
    memory = memory_of(["xodar", "issus"], ["issus", "carter"])
    made = evolver(memory)
    evolution = Evolution(
        inserted=[NewPoint(objects=["Xodar", "Carter"], description="new")],
        updated=[
            PointUpdate(point=1, objects=["Xodar", "Carter"], description="said anew"),
            PointUpdate(point=0, description="said"),
            PointUpdate(point=2, description="not shown"),
        ],
    )
    made.evolve(evolution, FOUND, None)
    assert made.memory.points[1].description == "said anew"
    assert made.memory.points[1].vertices == {"issus", "carter"}
    assert outcomes(made) == [
        ("update", "applied", None),
        ("update", "rejected", "unchanged"),
        ("update", "rejected", "unknown_point"),
        ("insert", "applied", None),
    ]


def test_the_released_code_puts_other_vertices_in_place() -> None:
    made = evolver(memory_of(["xodar", "issus"]), compat="released_code")
    update = PointUpdate(point=0, objects=["Xodar", "Carter"], description="anew")
    made.evolve(Evolution(updated=[update]), FOUND, None)
    assert made.memory.points[0].vertices == {"xodar", "carter"}


def test_merges_that_share_points_are_of_the_memory_as_shown() -> None:
    pairs = [["xodar", "issus"], ["issus", "carter"], ["xodar", "carter"], ["a", "b"]]
    memory = memory_of(*pairs)
    made = evolver(memory)
    merges = [
        ProposedMerge(points=[0, 1], description="one"),
        ProposedMerge(points=[1, 2, 3], description="two"),
        ProposedMerge(points=[1, 0], description="three"),
        ProposedMerge(points=[2, 2], description="itself"),
    ]
    made.merge(Merges(merges=merges), None)
    assert {n: p.parents for n, p in made.memory.points.items()} == {4: (0, 1), 5: (1, 2, 3)}
    assert made.memory.points[4].vertices == {"xodar", "issus", "carter"}
    assert made.memory.points[5].vertices == {"xodar", "issus", "carter", "a", "b"}
    assert outcomes(made) == [
        ("merge", "applied", None),
        ("merge", "applied", None),
        ("merge", "rejected", "repeated"),
        ("merge", "rejected", "unknown_point"),
    ]
    assert VOCABULARY.replay(made.draft.rows, memory) == made.memory


def test_the_overlapping_merges_of_fig_5_are_a_reply_in_either_format() -> None:
    said = [{"points": [1, 2], "description": "x"}, {"points": [2, 4, 5], "description": "y"}]
    merges = merges_schema(6).model_validate({"merges": said})
    printed = "[Points_to_Merge]:\n(1,2<|>x)##\n(2,4,5<|>y)##\n<|COMPLETE|>"
    assert parse_merges(printed, 6).model_dump() == merges.model_dump()


PROPOSALS = st.builds(
    Evolution,
    inserted=st.lists(
        st.builds(
            NewPoint,
            objects=st.lists(st.sampled_from([*NAMES, "…", "New thing"]), min_size=2, max_size=5),
            description=st.text(min_size=1, max_size=9),
        ),
        max_size=4,
    ),
    updated=st.lists(
        st.builds(
            PointUpdate, point=st.integers(0, 9), description=st.text(min_size=1, max_size=9)
        ),
        max_size=4,
    ),
)
MERGES = st.builds(
    Merges,
    merges=st.lists(
        st.builds(
            ProposedMerge,
            points=st.lists(st.integers(0, 9), max_size=4),
            description=st.text(min_size=1, max_size=9),
        ),
        max_size=3,
    ),
)


@given(st.lists(st.tuples(PROPOSALS, MERGES), max_size=4))
def test_whatever_is_proposed_the_log_gives_the_memory_again(
    steps: list[tuple[Evolution, Merges]],
) -> None:
    memory, rows = EMPTY, []
    for step, (evolution, merges) in enumerate(steps):
        made = evolver(memory, NAMES[:5], step)
        made.evolve(evolution, FOUND, None)
        made.merge(merges, None)
        memory = made.memory
        rows += made.draft.rows
    again = VOCABULARY.replay(rows)
    assert (again.points, again.vertices) == (memory.points, memory.vertices)
    for vertex in memory.vertices.values():
        assert (vertex.id in NAMES[:5]) != vertex.new
