"""Where a subquery looks: the sets of Eq. 6 and 7, computed from live hyperedges."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.hgmem.evidence import neighbourhood
from mgl.memories.hgmem.state import EMPTY, AddVertex, Edit, Vertex, apply
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


def test_the_overlay_is_seen_as_part_of_the_graph() -> None:
    graph = graph_of(["xodar", "issus"])
    memory = memory_of(["xodar", "issus"])
    new = Vertex("disgrace", "disgrace", (0,), True, "of Xodar", ("xodar",))
    memory = apply(memory, AddVertex(new))
    assert "disgrace" in neighbourhood(memory, graph, ["xodar"])


@given(logs(), PAIRS)
def test_a_neighbourhood_is_made_of_neighbours(
    log: list[Edit], pairs: list[tuple[str, str]]
) -> None:
    memory, graph = reduce(apply, log, EMPTY), graph_of(NAMES, *pairs)
    for point in memory.points.values():
        found = neighbourhood(memory, graph, point.vertices)
        assert found <= graph.entities.keys() | memory.vertices.keys()
        for each in found:
            near = (
                graph.neighbours(each) | memory.neighbours(each) | memory.overlay.neighbours(each)
            )
            assert near & point.vertices
