"""HGMem as a memory: one question over one document, whose graph all questions share.

    memory = HgMem(tools, document, [Question("Why is Xodar given to Carter as a slave?")])
    answer = await memory.answer(Question("Why is Xodar given to Carter as a slave?"))
    memory.state.points

Building it builds the graph (``graph``), once for a document, and takes the steps of the
question (``loop``). Without a question it is the graph alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mgl.errors import ReplyInvalid, UsageError
from mgl.memories.base import LogMemory, Tools, check_question
from mgl.memories.graph import DocumentGraph, Estimate, GraphConfig
from mgl.memories.graph.memory import find_graph_before
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.evidence import Evidence, Inquiry
from mgl.memories.hgmem.loop import Loop, has_failed, is_finished, writing_prompts
from mgl.memories.hgmem.state import VOCABULARY, Edit, Memory, Respond
from mgl.memories.hgmem.view import LogView, trace_log
from mgl.memories.view import GraphView
from mgl.prompt import Prompt
from mgl.types import Answer, Citation, Question, Source


class HgMem(LogMemory[HgMemConfig, Edit, Memory]):
    """Retrieves over several steps and keeps what a question needs as a hypergraph.

    Without a question it is the document's graph, under the graph's ``id``. Reopened by its
    ``identity``, it uses the graph it was begun with. ``graph`` is that of this document and
    configuration, if it is open already.
    """

    kind = "hgmem"
    retrieves = True
    per_question = True
    vocabulary = VOCABULARY
    Config = HgMemConfig

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
        await Loop(self._log, evidence, tools.observer).run()

    async def retry_failed(self) -> None:
        """Read the graph's failed chunks once more, then build; a question whose loop has ended
        keeps its answer."""
        await self._graph.retry_failed()
        await self.build()

    async def estimate(self) -> Estimate:
        """What the graph would cost; what a question costs is known when it has been asked."""
        return await self._graph.estimate()

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
            own = HgMem(self._tools, self._source, [question], self._config, graph=self._graph)
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
            citations=tuple(self._cite(number, memory) for number in last.chunks),
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
        options = () if self._question is None else self._question.options
        return {**scope, "options": options} if options else scope

    def _cite(self, number: int, memory: Memory) -> Citation:
        """Cite a chunk under the first entity of the memory that is tied to it, or under its
        number."""
        tied = (vertex.id for vertex in memory.vertices.values() if number in vertex.chunks)
        span = self._graph.chunks()[number].span
        return self._document.cite(next(tied, f"chunk-{number}"), span)


def _as_asked(question: Question) -> tuple[object, ...]:
    """The parts of a question that decide its answer; over a document neither asker nor time
    does."""
    return question.text, question.form, question.options
