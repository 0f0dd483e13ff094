"""The hypergraph and its edits: what holds after any sequence of them."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given

from mgl.memories.hgmem.state import (
    EMPTY,
    AddVertex,
    Edit,
    Insert,
    MergePoints,
    Point,
    UpdatePoint,
    Vertex,
    apply,
)
from mgl.memories.hypergraph import make_hypergraph
from tests.memories.hgmem.graphs import logs, memory_of


def test_what_the_released_code_keeps_of_merged_points_still_joins_their_vertices() -> None:
    memory = memory_of(["ann", "bo"], ["cy", "dee"])
    merged = apply(memory, MergePoints(1, 2, (0, 1), "together", kept=True))
    assert list(merged.points) == [2]
    assert merged.hypergraph.all_e == {("ann", "bo"), ("cy", "dee"), ("ann", "bo", "cy", "dee")}


def test_an_update_keeps_the_vertices_unless_it_gives_others() -> None:
    memory = memory_of(["ann", "bo"], ["cy", "dee"])
    said = apply(memory, UpdatePoint(3, 0, "anew"))
    assert said.points[0].vertices == {"ann", "bo"}
    assert (said.points[0].description, said.points[0].changed) == ("anew", 3)
    other = apply(memory, UpdatePoint(3, 0, "anew", ("ann", "cy")))
    assert other.neighbours("ann") == {"cy"}


def test_a_new_vertex_is_a_neighbour_of_what_it_came_with() -> None:
    memory = memory_of(["ann", "bo"])
    memory = apply(memory, AddVertex(Vertex("plot", "the plot", (3,), True, "why", ("ann",))))
    assert memory.overlay.neighbours("plot") == {"ann"}
    assert memory.overlay.neighbours("ann") == {"plot"}
    assert memory.overlay.neighbours("bo") == frozenset()


@pytest.mark.parametrize(
    "edit",
    [
        Insert(1, 0, "a number that is taken", ("ann", "bo")),
        Insert(1, 2, "a vertex that is not there", ("ann", "zed")),
        Insert(1, 2, "one vertex", ("ann",)),
        UpdatePoint(3, 7, "no such point"),
        UpdatePoint(3, 0, "no vertices", ("ann",)),
        MergePoints(1, 2, (0, 0), "with itself"),
        MergePoints(1, 2, (0, 7), "with one that is not there"),
        AddVertex(Vertex("ann", "ann", (0,))),
    ],
)
def test_an_edit_that_cannot_be_is_refused(edit: Edit) -> None:
    memory = memory_of(["ann", "bo"], ["cy", "dee"])
    with pytest.raises(ValueError, match=r"point|vert|parent|vertex"):
        apply(memory, edit)


@given(logs())
def test_no_point_is_lost(log: list[Edit]) -> None:
    """Every point that was inserted is there, or is an ancestor of one that is."""
    memory = reduce(apply, log, EMPTY)
    parents = {edit.point: edit.parents for edit in log if isinstance(edit, MergePoints)}
    reached = set(memory.points)
    border = list(memory.points)
    while border:
        found = parents.get(border.pop(), ())
        reached.update(found)
        border += found
    assert reached == set(range(memory.next_point))


@given(logs())
def test_a_merge_has_the_vertices_of_its_parents(log: list[Edit]) -> None:
    memory = EMPTY
    for edit in log:
        before, memory = memory, apply(memory, edit)
        if isinstance(edit, MergePoints):
            union = frozenset().union(*(before.points[each].vertices for each in edit.parents))
            assert memory.points[edit.point].vertices == union
            assert not set(edit.parents) & set(memory.points)


@given(logs())
def test_the_hypergraph_holds_the_memory(log: list[Edit]) -> None:
    """Its vertices and the points of its hyperedges are those of the memory, in full."""
    memory = reduce(apply, log, EMPTY)
    graph, points = memory.hypergraph, {}
    for edge in graph.all_e:
        for told in graph.e(edge)["points"]:
            chunks = told.pop("chunks")
            assert chunks == tuple(sorted({n for v in edge for n in graph.v(v)["chunks"]}))
            points[told["number"]] = Point(vertices=frozenset(edge), **told)
    assert points == memory.points
    assert {each: graph.v(each)["name"] for each in graph.all_v} == {
        each.id: each.name for each in memory.vertices.values()
    }
    for vertex in memory.vertices:
        near = {
            other for each in points.values() if vertex in each.vertices for other in each.vertices
        }
        assert memory.neighbours(vertex) == near - {vertex}


def test_no_pickle_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library reads a file of this name from the current folder when it is made plainly."""
    (tmp_path / "my_hypergraph.hgdb").write_bytes(b"cposix\nsystem\n(S'touch taken'\ntR.")
    monkeypatch.chdir(tmp_path)
    assert not make_hypergraph({}, []).all_e
    assert not (tmp_path / "taken").exists()
