"""Where a subquery looks: the sets of Eq. 6 and 7, computed from live hyperedges."""

from __future__ import annotations

from mgl.memories.hgmem.evidence import neighbourhood
from mgl.memories.hgmem.state import AddVertex, Vertex, apply
from tests.memories.hgmem.graphs import graph_of, memory_of


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
