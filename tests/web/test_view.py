"""A view at a step: what was brought before it and not yet taken away."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.types import Document
from mgl.web.arrange import drop_unseen

DOCUMENT = Document.from_text("a.txt", "a text")
WHOLE = DOCUMENT.span(0, 6)


@st.composite
def lives(draw: st.DrawFn) -> tuple[int, int | None]:
    step = draw(st.integers(0, 6))
    return step, draw(st.none() | st.integers(step, 8))


@st.composite
def views(draw: st.DrawFn) -> GraphView:
    nodes = tuple(
        ViewNode(f"n{index}", "kind", "", "", WHOLE, step, gone)
        for index, (step, gone) in enumerate(draw(st.lists(lives(), min_size=1, max_size=6)))
    )
    ends = st.sampled_from([node.id for node in nodes])
    edges = tuple(
        ViewEdge(f"e{index}", source, target, "", WHOLE, step, gone)
        for index, (source, target, (step, gone)) in enumerate(
            draw(st.lists(st.tuples(ends, ends, lives()), max_size=8))
        )
    )
    steps = draw(st.integers(0, 9))
    return GraphView("m", "memory", "model", DOCUMENT, (), steps, nodes, edges)


def ids(view: GraphView) -> set[str]:
    return {each.id for each in view.elements}


def replayed(view: GraphView, step: int) -> set[str]:
    """What is there when every step is carried out, one after the other."""
    there: set[str] = set()
    for now in range(step):
        there |= {each.id for each in view.elements if each.step == now}
        there -= {each.id for each in view.elements if each.gone == now}
    return there - {edge.id for edge in view.edges if not {edge.source, edge.target} <= there}


@given(views(), st.data())
def test_a_step_shows_what_carrying_out_the_steps_leaves(
    view: GraphView, data: st.DataObject
) -> None:
    step = data.draw(st.integers(0, view.length))
    then = view.at(step)
    assert ids(then) == replayed(view, step)
    assert then.steps == then.length == step
    assert then.at(step) == then


@given(views())
def test_what_lasts_is_what_some_step_shows(view: GraphView) -> None:
    shown = [ids(view.at(step)) for step in range(view.length + 1)]
    assert ids(drop_unseen(view)) == set().union(*shown)


def test_answers_come_after_the_last_step(view: GraphView) -> None:
    assert view.at(view.length).answers == view.answers != ()
    assert view.at(view.length - 1).answers == ()


@pytest.mark.parametrize("step", [-1, 3])
def test_a_step_that_there_is_not_is_refused(view: GraphView, step: int) -> None:
    with pytest.raises(ValueError, match="there are steps 0 to 2"):
        view.at(step)
