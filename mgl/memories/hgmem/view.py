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

LABEL_CHARACTERS = 40
_CASES = {"1": "sufficient", "2.1": "local investigation", "2.2": "global exploration"}


class LogView:
    """The ``nodes`` and ``edges`` of a log: every vertex, every wording of every point; of a
    question that was restarted those since the last restart."""

    def __init__(
        self, rows: Sequence[EditRecord], graph: EntityGraph, chunks: Sequence[Chunk]
    ) -> None:
        self.nodes: list[ViewNode] = []
        self.edges: list[ViewEdge] = []
        self._graph = graph
        self._chunks = chunks
        self._seen: defaultdict[int, list[int]] = defaultdict(list)
        memory, begun = (
            EMPTY,
            max((row.chunk + 1 for row in rows if row.op == "restart"), default=0),
        )
        for row in rows:
            said = VOCABULARY.parse(row)
            if row.chunk < begun or said is None:
                continue
            if isinstance(said, Retrieve):
                self._seen[row.chunk] += said.chunks
            if isinstance(said, AddVertex):
                self._draw_vertex(said.vertex, row.chunk)
            if (edit := VOCABULARY.edit(row)) is not None:
                before, memory = memory, apply(memory, edit)
                for point in before.points.values():
                    if memory.points.get(point.number) != point:
                        self._draw_point(point, before, row.chunk)
        for point in memory.points.values():
            self._draw_point(point, memory, None)

    def _draw_vertex(self, vertex: Vertex, step: int) -> None:
        known, span = self._graph.entities.get(vertex.id), self._span(vertex)
        kind = known.type if known is not None else "new entity"
        content = known.description if known is not None else vertex.description
        self.nodes.append(ViewNode(vertex.id, kind, vertex.name, content, span, step))

    def _draw_point(self, point: Point, memory: Memory, gone: int | None) -> None:
        """Draw a wording of a point of ``memory``, until the step in which it was ``gone``."""
        if gone == point.changed:
            return
        name, content, since = f"point {point.number}", point.description, point.changed
        if point.changed != point.step:
            name += f", updated in step {point.changed}"
        label = shorten(f"{point.number}: {content}", LABEL_CHARACTERS, placeholder="…")
        if point.parents:
            content += f" (merged of points {', '.join(map(str, point.parents))})"
        ends = [(each, self._span(memory.vertices[each])) for each in sorted(point.vertices)]
        span = self._source(point, memory) or min(span for _, span in ends)
        node = ViewNode(name, "point", label, content, span, since, gone=gone, hyperedge=True)
        self.nodes.append(node)
        self.edges += [
            ViewEdge(f"{name}|{each}", name, each, "holds", span, since, gone=gone)
            for each, span in ends
        ]

    def _source(self, point: Point, memory: Memory) -> Span | None:
        """Of the chunks its step found, the one that most of the point's entities are tied to."""
        seen = self._seen.get(point.step)
        if not seen:
            return None
        held = [memory.vertices[each].chunks for each in point.vertices]
        best = max(seen, key=lambda number: sum(number in chunks for chunks in held))
        return self._chunks[best].span

    def _span(self, vertex: Vertex) -> Span:
        known = self._graph.entities.get(vertex.id)
        return self._chunks[vertex.chunks[0]].span if known is None else known.mentions[0].span


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
