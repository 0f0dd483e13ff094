"""HGMem's memory as exporters draw it: entities, and points as areas around theirs.

Each wording of a point is a node with a life of its own, from the step that gave it to the one that
updated or merged it, so that the memory can be seen as it was after any step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from textwrap import shorten

from mgl.memories.graph import EntityGraph
from mgl.memories.hgmem.state import (
    EMPTY,
    VOCABULARY,
    AddVertex,
    Edit,
    Insert,
    Judge,
    Memory,
    Merge,
    Point,
    Restart,
    Retrieve,
    Subquery,
    Update,
    Vertex,
    apply,
)
from mgl.memories.view import ViewEdge, ViewNode
from mgl.store import EditRecord
from mgl.types import Chunk, Span

__all__ = ["LogView", "trace_log"]

LABEL_CHARACTERS = 40
_CASES = {"1": "sufficient", "2.1": "local investigation", "2.2": "global exploration"}

Steps = list[tuple[int, Edit]]
Life = tuple[Point, Memory, int | None]
"""A wording of a point, the memory that had it, and the step that took it."""


class LogView:
    """The ``nodes`` and ``edges`` of a log: every vertex, every wording of every point.

    What was restarted is named by its attempt, whose points have the numbers of the next one's.
    """

    def __init__(
        self, rows: Sequence[EditRecord], graph: EntityGraph, chunks: Sequence[Chunk]
    ) -> None:
        self.nodes: list[ViewNode] = []
        self.edges: list[ViewEdge] = []
        self._graph = graph
        self._chunks = chunks
        self._seen: defaultdict[int, list[int]] = defaultdict(list)
        for row in rows:
            if isinstance(said := VOCABULARY.parse(row), Retrieve):
                self._seen[row.chunk] += said.chunks
        for attempt, (edits, ended) in enumerate(_split_attempts(rows), 1):
            mark = "" if ended is None else f" (attempt {attempt})"
            memory, steps, lives = _replay_lives(edits, ended)
            for vertex in memory.vertices.values():
                self._draw_vertex(vertex, steps[vertex.id], ended, mark)
            for life in lives:
                self._draw_point(life, mark)

    def _draw_vertex(self, vertex: Vertex, step: int, gone: int | None, mark: str) -> None:
        known, span = self._graph.entities.get(vertex.id), self._span(vertex)
        kind = known.type if known is not None else "new entity"
        content = known.description if known is not None else vertex.description
        node = ViewNode(vertex.id + mark, kind, vertex.name, content, span, step, gone=gone)
        self.nodes.append(node)

    def _draw_point(self, life: Life, mark: str) -> None:
        point, memory, gone = life
        if gone == point.changed:
            return
        name = f"point {point.number}{mark}"
        if point.changed != point.step:
            name += f", updated in step {point.changed}"
        content, since = point.description, point.changed
        label = shorten(f"{point.number}: {content}", LABEL_CHARACTERS, placeholder="…")
        if point.parents:
            content += f" (merged of points {', '.join(map(str, point.parents))})"
        ends = [(each, self._span(memory.vertices[each])) for each in sorted(point.vertices)]
        span = self._source(point, memory) or min(span for _, span in ends)
        node = ViewNode(name, "point", label, content, span, since, gone=gone, hyperedge=True)
        self.nodes.append(node)
        self.edges += [
            ViewEdge(f"{name}|{each}", name, each + mark, "holds", span, since, gone=gone)
            for each, span in ends
        ]

    def _source(self, point: Point, memory: Memory) -> Span | None:
        """Of the chunks that its step found, the one that most of a point's entities are tied
        to."""
        seen = self._seen.get(point.step)
        if not seen:
            return None
        held = [memory.vertices[each].chunks for each in point.vertices]
        best = max(seen, key=lambda number: sum(number in chunks for chunks in held))
        return self._chunks[best].span

    def _span(self, vertex: Vertex) -> Span:
        known = self._graph.entities.get(vertex.id)
        return self._chunks[vertex.chunks[0]].span if known is None else known.mentions[0].span


def _split_attempts(rows: Sequence[EditRecord]) -> list[tuple[Steps, int | None]]:
    """The edits of each attempt, and the step of the restart that ended it."""
    attempts: list[tuple[Steps, int | None]] = []
    edits: Steps = []
    for row in rows:
        edit = VOCABULARY.edit(row)
        if isinstance(edit, Restart):
            attempts.append((edits, row.chunk))
            edits = []
        elif edit is not None:
            edits.append((row.chunk, edit))
    return [*attempts, (edits, None)]


def _replay_lives(edits: Steps, ended: int | None) -> tuple[Memory, dict[str, int], list[Life]]:
    """The memory at the end of an attempt, the steps that brought its vertices, and the lives of
    its points."""
    memory, lives = EMPTY, list[Life]()
    steps = {edit.vertex.id: step for step, edit in edits if isinstance(edit, AddVertex)}
    for step, edit in edits:
        before, memory = memory, apply(memory, edit)
        changed = (p for p in before.points.values() if memory.points.get(p.number) != p)
        lives += [(point, before, step) for point in changed]
    lives += [(point, memory, ended) for point in memory.points.values()]
    return memory, steps, lives


def trace_log(rows: Sequence[EditRecord], graph: EntityGraph) -> tuple[str, ...]:
    """One line for each subquery, each change of the memory and each judgement."""
    lines = ((row.chunk, _describe(VOCABULARY.parse(row), graph)) for row in rows)
    return tuple(f"step {step}: {line}" for step, line in lines if line)


def _describe(said: object, graph: EntityGraph) -> str:
    """What a row says happened; "" for one that the trace leaves out."""
    match said:
        case Judge(case=case):
            return f"judged {case} ({_CASES[case]})"
        case Subquery(text=text, case=None):
            return f"asked {text!r}"
        case Subquery(text=text, case=case, point=point):
            where = f" of point {point}" if point is not None else ""
            return f"asked {text!r} ({case}, {_CASES[str(case)]}{where})"
        case Retrieve(scope=scope, entities=entities, chunks=numbers):
            known = graph.entities
            names = ", ".join(known[each].name if each in known else each for each in entities)
            return f"found {names or 'nothing'}; {len(numbers)} chunks (among {scope} entities)"
        case Insert(point=point, vertices=vertices, description=description):
            return f"point {point} inserted over {', '.join(vertices)}: {description}"
        case Update(point=point, description=description):
            return f"point {point} updated: {description}"
        case Merge(point=point, parents=parents, description=description):
            merged = ", ".join(map(str, parents))
            return f"points {merged} merged into point {point}: {description}"
        case Restart():
            return "restarted"
    return ""
