"""Mnemis as a graph to look at: categories over the entities, and the facts between these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from mgl.memories.mnemis.edits import VOCABULARY, AddEntity, AddFact, Assign, PutCategory, Restore
from mgl.memories.mnemis.state import Category, State
from mgl.memories.view import ViewEdge, ViewNode
from mgl.store import EditRecord
from mgl.types import Span

HOLDS: Final = "holds"


def draw_graph(state: State, rows: Sequence[EditRecord]) -> tuple[list[ViewNode], list[ViewEdge]]:
    """Return the nodes and edges of a state, which ``rows`` lead to.

    A category stands on the first mention of its first entity, and its kind is its layer.
    """
    steps = dict(_find_steps(rows))
    nodes: list[ViewNode] = []
    edges: list[ViewEdge] = []
    for entity in state.entities.values():
        about = entity.name, entity.summary or entity.name, entity.mentions[0].span
        nodes.append(ViewNode(entity.id, "entity", *about, steps[entity.id]))
    for fact in state.facts.values():
        ends, span = (fact.id, fact.source, fact.target), fact.mentions[0].span
        edges.append(ViewEdge(*ends, fact.text, span, steps[fact.id]))
    for category in state.categories.values():
        span, step = _find_span(state, category), steps[category.id]
        about = category.name, category.summary or category.name, span
        kind = f"layer {category.layer}"
        nodes.append(ViewNode(category.id, kind, *about, step, layer=category.layer))
        for child in category.children:
            identity = f"{category.id}|{child}"
            begun = steps.get(identity, step)
            edges.append(ViewEdge(identity, category.id, child, HOLDS, span, begun))
    return nodes, edges


def _find_steps(rows: Sequence[EditRecord]) -> Iterator[tuple[str, int]]:
    """Yield the step at which each element came."""
    for row in rows:
        edit = VOCABULARY.edit(row)
        if isinstance(edit, AddEntity | AddFact | PutCategory):
            yield edit.id, row.chunk
        elif isinstance(edit, Restore):
            yield edit.node.id, row.chunk
        elif isinstance(edit, Assign):
            yield f"{edit.category}|{edit.child}", row.chunk


def _find_span(state: State, category: Category) -> Span:
    """Return the first mention of the first entity below a category."""
    first = category.children[0]
    while first in state.categories:
        first = state.categories[first].children[0]
    return state.entities[first].mentions[0].span
