"""Where a subquery looks: the sets of Eq. 6 and 7, computed from live hyperedges."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.hgmem.evidence import beyond, neighbourhood
from mgl.memories.hgmem.state import EMPTY, AddVertex, Edit, Merge, Vertex, apply
from tests.memories.hgmem.graphs import NAMES, graph_of, logs, memory_of

PAIRS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).filter(
        lambda pair: pair[0] != pair[1]
    ),
    max_size=10,
)


def test_a_neighbourhood_joins_the_memory_and_the_graph() -> None:
    graph = graph_of(["xodar", "issus", "carter", "phaidor", "thuria"], ("xodar", "phaidor"))
    memory = memory_of(["xodar", "issus"], ["issus", "carter"])
    assert neighbourhood(memory, graph, ["xodar"]) == {"issus", "phaidor"}
    assert neighbourhood(memory, graph, ["xodar", "issus"]) == {
        "xodar",
        "issus",
        "phaidor",
        "carter",
    }
    assert neighbourhood(memory, graph, ["xodar"], hops=2) == {
        "xodar",
        "issus",
        "phaidor",
        "carter",
    }


def test_a_merge_of_three_points_widens_what_is_investigated() -> None:
    graph = graph_of(["xodar", "issus", "carter", "defeat", "slave", "first born"])
    memory = memory_of(["xodar", "issus"], ["carter", "defeat"], ["slave", "first born"])
    before = neighbourhood(memory, graph, memory.points[0].vertices)
    merged = apply(memory, Merge(1, 3, (0, 1, 2), "why he is given"))
    after = neighbourhood(merged, graph, merged.points[3].vertices)
    assert before == {"xodar", "issus"}
    assert after == {"xodar", "issus", "carter", "defeat", "slave", "first born"}
    assert neighbourhood(merged, graph, ["xodar"]) == after - {"xodar"}


def test_the_overlay_is_seen_as_part_of_the_graph() -> None:
    graph = graph_of(["xodar", "issus"])
    memory = memory_of(["xodar", "issus"])
    new = Vertex("disgrace", "disgrace", (0,), True, "of Xodar", ("xodar",))
    memory = apply(memory, AddVertex(new))
    assert "disgrace" in neighbourhood(memory, graph, ["xodar"])
    assert beyond(memory, graph) == frozenset()


def test_what_lies_beyond_is_the_graph_without_the_memory() -> None:
    graph = graph_of(["xodar", "issus", "carter"])
    assert beyond(memory_of(["xodar", "issus"]), graph) == {"carter"}


@given(logs(), PAIRS)
def test_beyond_never_holds_a_vertex_of_the_memory(
    log: list[Edit], pairs: list[tuple[str, str]]
) -> None:
    memory, graph = (
        reduce(apply, log, EMPTY),
        graph_of(NAMES[:6], *[p for p in pairs if set(p) <= set(NAMES[:6])]),
    )
    found = beyond(memory, graph)
    assert not found & memory.vertices.keys()
    assert found <= graph.entities.keys()


@given(logs(), PAIRS)
def test_a_neighbourhood_is_made_of_neighbours(
    log: list[Edit], pairs: list[tuple[str, str]]
) -> None:
    memory, graph = reduce(apply, log, EMPTY), graph_of(NAMES, *pairs)
    for point in memory.points.values():
        found = neighbourhood(memory, graph, point.vertices)
        assert found <= graph.entities.keys() | memory.vertices.keys()
        for each in found:
            near = graph.neighbours(each) | memory.neighbours(each) | memory.overlay(each)
            assert near & point.vertices
