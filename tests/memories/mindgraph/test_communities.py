from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.mindgraph.communities import partition
from mgl.memories.mindgraph.state import AddEdge, AddNode, Graph, replay
from mgl.types import Span

SPAN = Span("d", 0, 1)


def graph_of(nodes: int, pairs: list[tuple[int, int]]) -> Graph:
    edits: list[AddNode | AddEdge] = [
        AddNode(f"n{number}", "entity", "", SPAN, "x", 0) for number in range(nodes)
    ]
    for source, target in dict.fromkeys(pairs):
        if source != target and max(source, target) < nodes:
            edits.append(AddEdge(f"n{source}", f"n{target}", "r", SPAN, "x", 0))
    return replay(edits)


pairs = st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=80)


@given(st.integers(0, 40), pairs)
def test_every_node_is_in_exactly_one_subgraph_of_bounded_size(
    nodes: int, drawn: list[tuple[int, int]]
) -> None:
    graph = graph_of(nodes, drawn)
    parts = partition(graph, max_cluster_size=10, seed=0)
    members = [node.id for part in parts for node in part.nodes]
    assert sorted(members) == sorted(node.id for node in graph.nodes)
    assert all(1 <= len(part.nodes) <= 10 for part in parts)
    assert [part.id for part in parts] == list(range(len(parts)))


@given(pairs)
def test_a_seed_fixes_the_partition(drawn: list[tuple[int, int]]) -> None:
    graph = graph_of(40, drawn)
    first = partition(graph, max_cluster_size=10, seed=3)
    assert first == partition(graph, max_cluster_size=10, seed=3)


def test_two_cliques_are_two_subgraphs() -> None:
    inside = [(a, b) for a in range(5) for b in range(a)]
    apart = graph_of(10, [*inside, *((a + 5, b + 5) for a, b in inside), (0, 5)])
    parts = partition(apart, max_cluster_size=10, seed=0)
    assert [{node.id for node in part.nodes} for part in parts] == [
        {f"n{number}" for number in range(5)},
        {f"n{number}" for number in range(5, 10)},
    ]


def test_a_star_that_leiden_leaves_whole_is_split() -> None:
    star = graph_of(31, [(0, leaf) for leaf in range(1, 31)])
    assert max(len(part.nodes) for part in partition(star, max_cluster_size=10, seed=0)) == 10
