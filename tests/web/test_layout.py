from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from mgl.web.layout import LIMIT, positions


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(0, 25))
    if not count:
        return 0, []
    node = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(node, node), max_size=50))


@given(graphs())
def test_every_node_has_a_place_of_its_own(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph
    places = positions(count, edges)
    assert len(places) == count
    for index, one in enumerate(places):
        assert all(math.isfinite(each) for each in one)
        assert all(math.dist(one, other) > 15 for other in places[:index])


@given(graphs())
def test_direction_repetition_and_order_of_edges_make_no_difference(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    count, edges = graph
    assert positions(count, edges) == positions(count, [(b, a) for a, b in edges[::-1]] + edges)


def test_neighbours_lie_nearer_than_the_far_end_of_a_chain() -> None:
    places = positions(6, [(index, index + 1) for index in range(5)])
    assert math.dist(places[0], places[1]) * 3 < math.dist(places[0], places[5])


def test_a_part_too_large_for_distances_is_drawn_all_the_same() -> None:
    count = LIMIT + 1
    places = positions(count, [(0, index) for index in range(1, count)])
    assert len(set(places)) == count
    middle = [sum(axis) / count for axis in zip(*places, strict=True)]
    distances = [math.dist(place, middle) for place in places]
    assert distances[0] < max(distances) / 10
