"""HGMem as a memory: one question over one document, whose graph all questions share.

    memory = HgMem(tools, document, [Question("Why is Xodar given to Carter as a slave?")])
    answer = await memory.answer(Question("Why is Xodar given to Carter as a slave?"))
    memory.state.points

Building it builds the graph (``graph``), once for a document, and takes the steps of the
question (``loop``). Without a question it is the graph alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar

from mgl.errors import ReplyInvalid, UsageError
from mgl.memories.base import LogMemory, Tools, check_question
from mgl.memories.calls import Part, cite_evidence
from mgl.memories.estimates import Estimate
from mgl.memories.graph import DocumentGraph, EntityGraph, GraphConfig
from mgl.memories.graph.memory import find_graph_before
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.evidence import Evidence, Inquiry
from mgl.memories.hgmem.loop import Loop, has_failed, is_finished, writing_prompts
from mgl.memories.hgmem.state import (
    EMPTY,
    VOCABULARY,
    AddVertex,
    ChosenCase,
    Edit,
    HypergraphMemory,
    Insert,
    MergePoints,
    Point,
    Respond,
    Restart,
    Retrieve,
    Subquery,
    UpdatePoint,
    Vertex,
    apply,
    find_start,
)
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.prompt import Prompt, one_line
from mgl.store import EditRecord, MemoryRecord, Store
from mgl.types import Answer, Chunk, Citation, Question, Source, Span

STAGES = ("evolve", "merge", "concerns", "subquery", "read", "check", "answer")
"""The stages of the calls that a question takes."""


class HgMem(LogMemory[HgMemConfig, Edit, HypergraphMemory]):
    """Retrieves over several steps and keeps what a question needs as a hypergraph.

    Without a question it is the document's graph, under the graph's ``id``. Reopened by its
    ``identity``, it uses the graph it was begun with. ``graph`` is that of this document and
    configuration, if it is open already.
    """

    kind = "hgmem"
    retrieves = True
    per_question = True
    vocabulary = VOCABULARY
    Config: ClassVar[type[HgMemConfig]] = HgMemConfig
    loop_type: ClassVar[type[Loop]] = Loop

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: HgMemConfig | None = None,
        *,
        identity: str | None = None,
        graph: DocumentGraph | None = None,
    ) -> None:
        super().__init__(tools, source, questions, config, identity=identity)
        if len(questions) > 1:
            raise UsageError(
                "hgmem keeps a memory for each question",
                hint="build it without a question, then ask each: all share the graph that is "
                "built once",
            )
        self._question = questions[0] if questions else None
        known = None if identity is None else find_graph_before(tools.store, identity, self._config)
        own = GraphConfig.of(self._config)
        self._graph = graph or DocumentGraph(tools, source, (), own, identity=known)

    @classmethod
    def find_base(cls, store: Store, record: MemoryRecord) -> str | None:
        """Find the graph that a stored memory is read from, without which it cannot be shown."""
        config = cls.Config.model_validate(
            {key: value for key, value in record.config.items() if key in cls.Config.model_fields}
        )
        return find_graph_before(store, record.id, config)

    @property
    def id(self) -> str:
        if self._identity is None and self._question is None:
            return self._graph.id
        return super().id

    async def build(self) -> None:
        """Build the graph, then take the question's steps, from where the logs end."""
        if self.is_built():
            return
        await self._graph.build()
        if self._question is None:
            return
        tools, config = self._tools, self._config
        tokens = tools.store.memory(self._graph.id).tokens
        self._log.open(lambda: self._record(tokens=tokens))
        graph, chunks = self._graph.graph(), self._graph.chunks()
        inquiry = Inquiry(tools.llm, self._question, graph, chunks, config)
        evidence = Evidence(inquiry, await self._graph.index())
        await self.loop_type(self._log, evidence, tools.observer).run()

    async def retry_failed(self) -> None:
        """Read the graph's failed chunks once more, then build; a question whose loop has ended
        keeps its answer."""
        await self._graph.retry_failed()
        await self.build()

    async def estimate(self) -> Estimate:
        """What the rest of the graph costs, and with a question what its steps cost at most."""
        graph = await self._graph.estimate()
        if self._question is None or self.is_built():
            return graph
        config, store, model = self._config, self._tools.store, self._tools.llm.model_id
        first, later = self._count_step_calls()
        calls = first + config.steps * later + 1  # and one that answers
        steps = Estimate(
            calls,
            calls * self._count_prompt_tokens(),
            is_bound=not config.released,  # whose code begins again after an unreadable reply
        ).at([(None, calls), *((store.pace(model, stage), 0) for stage in STAGES)])
        return graph + steps

    def _count_step_calls(self) -> tuple[int, int]:
        """The calls of the first step and of a later one, at most: a judgement and its subqueries,
        then the memory evolves and its points merge."""
        evolving = 1 + self._config.merge
        return evolving, 1 + self._config.concerns + evolving

    def _count_prompt_tokens(self) -> int:
        """The tokens that a call reads of chunks and relations, at most."""
        return self._config.chunk_tokens_shown + self._config.relation_tokens

    def is_built(self) -> bool:
        """Whether the question's loop has ended, with an answer."""
        rows = self._log.rows if self._question is not None else []
        return is_finished(rows) and not has_failed(rows)

    async def answer(self, question: Question) -> Answer:
        """Answer from the memory of this question (builds what is missing first).

        ReplyInvalid if the model gave no usable reply; asking again calls it again.
        """
        check_question(question)
        mine = self._question
        if mine is None or _as_asked(question) != _as_asked(mine):
            own = type(self)(self._tools, self._source, [question], self._config, graph=self._graph)
            return await own.answer(question)
        await self.build()
        rows, chunks, memory = self._log.rows, self._graph.chunks(), self.state
        responses = [said for row in rows if isinstance(said := VOCABULARY.parse(row), Respond)]
        if has_failed(rows) or not responses:
            raise ReplyInvalid(
                "the model gave no answer that could be used",
                hint="ask again, or use a larger reply budget or model; `mgl show` tells which "
                "reply failed",
            )
        last = responses[-1]
        return Answer(
            question=question.text,
            text=last.text,
            confidence=None,
            citations=self._cite_answer(last, memory),
            trace=(
                f"entities and chunks by {self._tools.required_embedder.model_id}",
                *trace_log(rows, self._graph.graph()),
            ),
            retrieved=tuple(chunks[number].span.place for number in last.read),
        )

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The hypergraph as exporters draw it; without a question the graph."""
        if self._question is None:
            return self._graph.view(answers)
        rows = self._log.rows
        drawn = LogView(rows, self._graph.graph(), self._graph.chunks())
        steps = rows[-1].chunk + 1 if rows else 0
        return self._view(drawn.nodes, drawn.edges, steps=steps, answers=answers)

    def _writing_prompts(self) -> Sequence[Prompt]:
        return () if self._question is None else writing_prompts(self._config, self._question)

    def _scope(self) -> dict[str, Any]:
        scope = {
            "document": self._source.id,
            "graph": self._graph.id,
            "questions": [question.text for question in self._questions],
            "embedder": self._tools.required_embedder.model_id,
        }
        if (asked := self._question) is not None:
            own = {"options": asked.options, "unknown": asked.unknown}
            scope |= {name: value for name, value in own.items() if value}
        return scope

    def _cite_answer(self, said: Respond, memory: HypergraphMemory) -> tuple[Citation, ...]:
        """Cite the sentences that tell most of an answer, in the chunks that it was given."""
        assert self._question is not None
        parts = [self._name_chunk(number, memory) for number in said.read]
        return cite_evidence(self._document, said.text, self._question, parts)

    def _name_chunk(self, number: int, memory: HypergraphMemory) -> Part:
        """A chunk under the first entity of the memory that is tied to it, or under its number."""
        tied = (vertex.id for vertex in memory.vertices.values() if number in vertex.chunks)
        return next(tied, f"chunk-{number}"), self._graph.state.passages[number].span


def _as_asked(question: Question) -> tuple[object, ...]:
    """The parts of a question that decide its answer; over a document neither asker nor time
    does."""
    return question.text, question.form, question.options, question.unknown


# As it is drawn and traced

LABEL_CHARACTERS = 40
_CASES = {"1": "sufficient", "2.1": "local investigation", "2.2": "global exploration"}


class LogView:
    """The ``nodes`` and ``edges`` of a log: every vertex, every wording of every point, which is
    an area around its entities; of a question that was restarted those since the last restart.

    A wording lives from the step that gave it to the one that updated or merged it.
    """

    def __init__(
        self, rows: Sequence[EditRecord], graph: EntityGraph, chunks: Sequence[Chunk]
    ) -> None:
        self.nodes: list[ViewNode] = []
        self.edges: list[ViewEdge] = []
        self._graph = graph
        self._chunks = chunks
        self._seen: defaultdict[int, list[int]] = defaultdict(list)
        memory = EMPTY
        begun = find_start(rows)
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

    def _draw_point(self, point: Point, memory: HypergraphMemory, gone: int | None) -> None:
        """Draw a wording of a point of ``memory``, until the step in which it was ``gone``."""
        if gone == point.changed:
            return
        name, content, since = f"point {point.number}", point.description, point.changed
        if point.changed != point.step:
            name += f", updated in step {point.changed}"
        label = one_line(f"{point.number}: {content}", LABEL_CHARACTERS)
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

    def _source(self, point: Point, memory: HypergraphMemory) -> Span | None:
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
        case ChosenCase(case=case):
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
        case UpdatePoint(point=point, description=description):
            return f"point {point} updated: {description}"
        case MergePoints(point=point, parents=parents, description=description):
            merged = ", ".join(map(str, parents))
            return f"points {merged} merged into point {point}: {description}"
        case Restart():
            return "restarted"
    return ""
