from __future__ import annotations

import pytest

from mgl.evaluation.metrics.points import entities_of_points
from mgl.evaluation.metrics.steps import right_by_step
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.types import Document

DOCUMENT = Document.from_text("a.txt", "Ann met Bo.")
SPAN = DOCUMENT.span(0, 11)


def entity(id: str, step: int = 0) -> ViewNode:
    return ViewNode(id, "person", id, "", SPAN, step)


def point(id: str, step: int, gone: int | None = None) -> ViewNode:
    return ViewNode(id, "point", id, "", SPAN, step, gone=gone, hyperedge=True)


def holds(point: str, *entities: str, step: int, gone: int | None = None) -> list[ViewEdge]:
    return [
        ViewEdge(f"{point}|{entity}", point, entity, "holds", SPAN, step, gone=gone)
        for entity in entities
    ]


def view(nodes: list[ViewNode], edges: list[ViewEdge], steps: int) -> GraphView:
    return GraphView("id", "m", "m", DOCUMENT, (), steps, tuple(nodes), tuple(edges))


def test_points_of_the_final_memory_are_counted() -> None:
    nodes = [*map(entity, "abcd"), point("p0", 0, gone=1), point("p1", 0, gone=1), point("p2", 1)]
    edges = [
        *holds("p0", "a", "b", step=0, gone=1),
        *holds("p1", "b", "c", step=0, gone=1),
        *holds("p2", "a", "b", "c", step=1),
        ViewEdge("a|d", "a", "d", "knows", SPAN, 0),
        ViewEdge("p2|p2", "p2", "p2", "is", SPAN, 1),
    ]
    memory = view(nodes, edges, 2)
    assert entities_of_points(memory) == {"p2": 3}
    assert entities_of_points(memory.at(1)) == {"p0": 2, "p1": 2}


def test_an_entity_counts_once_and_the_end_it_stands_at_does_not_matter() -> None:
    back = ViewEdge("a|p", "a", "p", "in", SPAN, 0)
    nodes = [entity("a"), entity("b"), point("p", 0), point("q", 0)]
    assert entities_of_points(view(nodes, [*holds("p", "a", "b", step=0), back], 1)) == {
        "p": 2,
        "q": 0,
    }


def test_a_memory_without_points() -> None:
    assert entities_of_points(view([entity("a")], [], 1)) == {}


def test_a_question_that_has_ended_keeps_its_answer() -> None:
    answers = [{0: "Bern", 2: "Rome"}, {0: "Ann"}, {1: "Bo"}, {}]
    shares = right_by_step(answers, [["Rome"], ["Ann", "Anna"], ["Bo"], ["Cy"]])
    assert [(share.mean, share.n) for share in shares] == [(0.25, 4), (0.5, 4), (0.75, 4)]


def test_no_answers_have_no_steps() -> None:
    assert right_by_step([], []) == []
    assert right_by_step([{}], [["Rome"]]) == []


def test_each_question_needs_its_gold() -> None:
    with pytest.raises(ValueError, match="argument"):
        right_by_step([{0: "Rome"}], [])
