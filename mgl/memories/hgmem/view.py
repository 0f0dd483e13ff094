"""HGMem's memory as exporters draw it: entities, and points as areas around theirs.

Each wording of a point is a node with a life of its own, from the step that gave it to the one that
updated or merged it, so that the memory can be seen as it was after any step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from textwrap import shorten

from mgl.memories.graph import EntityGraph
from mgl.memories.hgmem.state import (
    EMPTY,
    VOCABULARY,
    Edit,
    Insert,
    Judge,
    Memory,
    Merge,
    Point,
    Respond,
    Restart,
    Retrieve,
    Stop,
    Subquery,
    Update,
    Vertex,
    apply,
)
from mgl.memories.view import ViewEdge, ViewNode
from mgl.store import EditRecord
from mgl.types import Chunk, Span

__all__ = ["draw_log", "trace_log"]

LABEL_CHARACTERS = 40
_CASES = {"1": "sufficient", "2.1": "local investigation", "2.2": "global exploration"}


def draw_log(
    rows: Sequence[EditRecord], graph: EntityGraph, chunks: Sequence[Chunk]
) -> tuple[tuple[ViewNode, ...], tuple[ViewEdge, ...]]:
    """The nodes and edges of a log: every vertex, every wording of every point.

    What was restarted is named by its attempt, whose points have the numbers of the next one's.
    """
    nodes: list[ViewNode] = []
    edges: list[ViewEdge] = []
    seen = _find_seen(rows)
    for attempt, (edits, ended) in enumerate(_attempts(rows), 1):
        mark = "" if ended is None else f" (attempt {attempt})"
        memory, steps, lives = _replay_lives(edits, ended)
        for vertex in memory.vertices.values():
            nodes.append(_entity(vertex, graph, chunks, steps[vertex.id], ended, mark))
        for point, held, gone in lives:
            if gone == point.changed:
                continue
            name = f"point {point.number}{mark}"
            if point.changed != point.step:
                name += f", updated in step {point.changed}"
            spans = [_span(held.vertices[each], graph, chunks) for each in sorted(point.vertices)]
            nodes.append(
                ViewNode(
                    name,
                    "point",
                    shorten(
                        f"{point.number}: {point.description}", LABEL_CHARACTERS, placeholder="…"
                    ),
                    _describe(point),
                    _source(point, held, seen.get(point.step, ()), chunks) or min(spans),
                    point.changed,
                    gone=gone,
                    hyperedge=True,
                )
            )
            edges += [
                ViewEdge(
                    f"{name}|{each}", name, each + mark, "holds", span, point.changed, gone=gone
                )
                for each, span in zip(sorted(point.vertices), spans, strict=True)
            ]
    return tuple(nodes), tuple(edges)


def _attempts(rows: Sequence[EditRecord]) -> list[tuple[list[tuple[int, Edit]], int | None]]:
    """The edits of each attempt, and the step of the restart that ended it."""
    attempts: list[tuple[list[tuple[int, Edit]], int | None]] = []
    edits: list[tuple[int, Edit]] = []
    for row in rows:
        edit = VOCABULARY.edit(row)
        if isinstance(edit, Restart):
            attempts.append((edits, row.chunk))
            edits = []
        elif edit is not None:
            edits.append((row.chunk, edit))
    return [*attempts, (edits, None)]


def _replay_lives(
    edits: Sequence[tuple[int, Edit]], ended: int | None
) -> tuple[Memory, dict[str, int], list[tuple[Point, Memory, int | None]]]:
    """The memory at the end of an attempt, the steps that brought its vertices, and each wording
    of a point with the memory that had it and the step that took it."""
    memory = EMPTY
    steps: dict[str, int] = {}
    lives: list[tuple[Point, Memory, int | None]] = []
    for step, edit in edits:
        before, memory = memory, apply(memory, edit)
        for vertex in memory.vertices.keys() - before.vertices.keys():
            steps[vertex] = step
        for point in before.points.values():
            if memory.points.get(point.number) != point:
                lives.append((point, before, step))
    lives += [(point, memory, ended) for point in memory.points.values()]
    return memory, steps, lives


def trace_log(rows: Sequence[EditRecord], graph: EntityGraph) -> tuple[str, ...]:
    """One line for each subquery, each change of the memory and each judgement."""
    return tuple(line for row in rows for line in _lines(row, graph))


def _lines(row: EditRecord, graph: EntityGraph) -> Iterator[str]:
    said, at = VOCABULARY.parse(row), f"step {row.chunk}"
    match said:
        case Judge(case=case):
            yield f"{at}: judged {case} ({_CASES[case]})"
        case Subquery(text=text, case=None):
            yield f"{at}: asked {text!r}"
        case Subquery(text=text, case=case, point=point):
            where = f" of point {point}" if point is not None else ""
            yield f"{at}: asked {text!r} ({case}, {_CASES[str(case)]}{where})"
        case Retrieve(scope=scope, entities=entities, chunks=numbers):
            names = ", ".join(_name(each, graph) for each in entities) or "nothing"
            yield f"{at}: found {names}; {len(numbers)} chunks (among {scope} entities)"
        case Respond() | Stop() | None:
            pass
        case _:
            yield from _changes(said, at)


def _changes(said: object, at: str) -> Iterator[str]:
    match said:
        case Insert(point=point, vertices=vertices, description=description):
            yield f"{at}: point {point} inserted over {', '.join(vertices)}: {description}"
        case Update(point=point, description=description):
            yield f"{at}: point {point} updated: {description}"
        case Merge(point=point, parents=parents, description=description):
            merged = ", ".join(map(str, parents))
            yield f"{at}: points {merged} merged into point {point}: {description}"
        case Restart():
            yield f"{at}: restarted"


def _describe(point: Point) -> str:
    if not point.parents:
        return point.description
    return f"{point.description} (merged of points {', '.join(map(str, point.parents))})"


def _find_seen(rows: Sequence[EditRecord]) -> dict[int, list[int]]:
    """The chunks that each step found."""
    found: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        if isinstance(said := VOCABULARY.parse(row), Retrieve):
            found[row.chunk] += said.chunks
    return found


def _source(
    point: Point, memory: Memory, seen: Sequence[int], chunks: Sequence[Chunk]
) -> Span | None:
    """Of the chunks that its step found, the one that most of a point's entities are tied to."""
    if not seen:
        return None
    held = [memory.vertices[each].chunks for each in point.vertices]
    return chunks[max(seen, key=lambda number: sum(number in tied for tied in held))].span


def _entity(
    vertex: Vertex,
    graph: EntityGraph,
    chunks: Sequence[Chunk],
    step: int,
    gone: int | None,
    mark: str,
) -> ViewNode:
    known = graph.entities.get(vertex.id)
    return ViewNode(
        vertex.id + mark,
        known.type if known is not None else "new entity",
        vertex.name,
        known.description if known is not None else vertex.description,
        _span(vertex, graph, chunks),
        step,
        gone=gone,
    )


def _span(vertex: Vertex, graph: EntityGraph, chunks: Sequence[Chunk]) -> Span:
    known = graph.entities.get(vertex.id)
    return known.mentions[0].span if known is not None else chunks[vertex.chunks[0]].span


def _name(entity: str, graph: EntityGraph) -> str:
    known = graph.entities.get(entity)
    return known.name if known is not None else entity
