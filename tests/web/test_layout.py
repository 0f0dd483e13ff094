from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.store import MemoryRecord, Store
from mgl.types import Document
from mgl.web import layout
from mgl.web.layout import keep_positions, positions

MANY = 40


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(0, 25))
    if not count:
        return 0, []
    node = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(node, node), max_size=50))


@pytest.mark.heavy
@given(graphs())
def test_every_node_has_a_place_of_its_own(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = graph
    places = positions(count, edges)
    assert len(places) == count
    for index, one in enumerate(places):
        assert all(math.isfinite(each) for each in one)
        assert all(math.dist(one, other) > 15 for other in places[:index])


@pytest.mark.heavy
@given(graphs())
def test_direction_repetition_and_order_of_edges_make_no_difference(
    graph: tuple[int, list[tuple[int, int]]],
) -> None:
    count, edges = graph
    assert positions(count, edges) == positions(count, [(b, a) for a, b in edges[::-1]] + edges)


def test_neighbours_lie_nearer_than_the_far_end_of_a_chain() -> None:
    places = positions(6, [(index, index + 1) for index in range(5)])
    assert math.dist(places[0], places[1]) * 3 < math.dist(places[0], places[5])


def test_a_part_too_large_for_distances_is_drawn_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(layout, "LIMIT", 100)
    count = 101
    places = positions(count, [(0, index) for index in range(1, count)])
    assert len(set(places)) == count
    middle = [sum(axis) / count for axis in zip(*places, strict=True)]
    distances = [math.dist(place, middle) for place in places]
    assert distances[0] < max(distances) / 10


def test_a_large_graph_is_placed_once_and_anew_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, document = tmp_path / "store.sqlite", Document.from_text("a.txt", "x")
    ring = [(index, (index + 1) % MANY) for index in range(MANY)]
    placed: list[int] = []

    def count_placing(count: int, edges: list[tuple[int, int]]) -> list[tuple[float, float]]:
        placed.append(count)
        return positions(count, edges)

    monkeypatch.setattr(layout, "LARGE", MANY)
    monkeypatch.setattr(layout, "positions", count_placing)
    with Store.open(path) as store:
        store.put_document(document)
        store.put_memory(MemoryRecord("m", "toy", document.id, (), "model", {}, 0, 0))
        first = keep_positions(store, "m")(MANY, ring)
    with Store.open(path) as store:
        place = keep_positions(store, "m")
        assert place(MANY, ring[::-1]) == first == positions(MANY, ring)
        assert placed == [MANY]
        place(MANY, ring[:-1])
        place(MANY - 1, [])
        assert placed == [MANY, MANY, MANY - 1]
