"""Mnemis' memory as exporters draw it: categories over entities, and facts between these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mgl.memories.mnemis.edits import resolved
from mgl.memories.mnemis.nodes import Category
from mgl.memories.mnemis.state import AddEntity, AddFact, Assign, PutCategory, State
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.store import EditRecord, MemoryRecord
from mgl.types import Answer, Conversation, Source, Span

__all__ = ["viewed"]

HOLDS = "holds"


def viewed(
    record: MemoryRecord,
    source: Source,
    state: State,
    rows: Sequence[EditRecord],
    answers: Sequence[Answer],
) -> GraphView:
    """The state with the steps at which its elements came; a category stands on its first entity,
    and its kind is its layer. One that a deletion left in place of another came with it."""
    steps = dict(_steps(rows))
    deleted = max((row.chunk for row in rows if row.op == "forget"), default=0)
    nodes = [
        ViewNode(
            entity.id,
            "entity",
            entity.name,
            entity.summary or entity.name,
            entity.mentions[0].span,
            steps[entity.id],
        )
        for entity in state.entities.values()
    ]
    edges = [
        ViewEdge(
            fact.id,
            fact.source,
            fact.target,
            fact.text,
            fact.mentions[0].span,
            steps[fact.id],
        )
        for fact in state.facts.values()
    ]
    for category in state.categories.values():
        span, step = _span(state, category), steps.get(category.id, deleted)
        nodes.append(
            ViewNode(
                category.id,
                f"layer {category.layer}",
                category.name,
                category.summary or category.name,
                span,
                step,
                layer=category.layer,
            )
        )
        edges += [
            ViewEdge(
                f"{category.id}|{child}",
                category.id,
                child,
                HOLDS,
                span,
                steps.get(f"{category.id}|{child}", step),
            )
            for child in category.children
        ]
    return GraphView(
        memory_id=record.id,
        memory=record.kind,
        model=record.model_id,
        document=source.transcript if isinstance(source, Conversation) else source,
        questions=record.questions,
        steps=max((row.chunk + 1 for row in rows), default=0),
        nodes=tuple(nodes),
        edges=tuple(edges),
        answers=tuple(answers),
    )


def _steps(rows: Sequence[EditRecord]) -> Iterator[tuple[str, int]]:
    """The step at which each element came."""
    for row in rows:
        edit = resolved(row)
        if isinstance(edit, AddEntity | AddFact | PutCategory):
            yield edit.id, row.chunk
        elif isinstance(edit, Assign):
            yield f"{edit.category}|{edit.child}", row.chunk


def _span(state: State, category: Category) -> Span:
    """The first mention of the first entity below a category."""
    first = category.children[0]
    while first in state.categories:
        first = state.categories[first].children[0]
    return state.entities[first].mentions[0].span
