"""HGMem as a memory: one question over one document, whose graph all questions share.

    memory = HgMem(tools, document, [Question("Why is Xodar given to Carter as a slave?")])
    answer = await memory.answer(Question("Why is Xodar given to Carter as a slave?"))
    memory.memory(steps=1).points

Building it builds the graph (``graph``), once for a document, and takes the steps of the
question (``loop``). Without a question it is the graph alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mgl.errors import InputError, ReplyInvalid, UsageError
from mgl.memories.base import Tools, memory_id
from mgl.memories.graph import DocumentGraph, Estimate, GraphConfig
from mgl.memories.graph.memory import find_graph_before
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.edits import Respond, edits_of, read
from mgl.memories.hgmem.evidence import Evidence
from mgl.memories.hgmem.loop import Loop, is_finished, writing_prompts
from mgl.memories.hgmem.state import Memory, replay
from mgl.memories.hgmem.view import drawn, trace
from mgl.memories.view import GraphView
from mgl.store import MemoryRecord
from mgl.types import Answer, Citation, Document, Question, Source

__all__ = ["KIND", "HgMem"]

KIND = "hgmem"


class HgMem:
    """The memory of one question. ``id`` is a hash of all that decides its log; without a question
    it is the graph's. One that is opened again by its ``identity`` stands on the graph that it was
    begun over. ``graph`` is that of this document and configuration, where it is open already."""

    reads: Final = "document"
    retrieves: Final = True
    per_question: Final = True
    question_aware: Final = False
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
        if not isinstance(source, Document):
            raise UsageError(
                f"hgmem reads documents, and {source.name} is a conversation",
                hint="--memory gam remembers conversations",
            )
        if len(questions) > 1:
            raise UsageError(
                "hgmem keeps a memory for each question",
                hint="build it without a question, then ask each: all share the graph that is "
                "built once",
            )
        if any(not question.text.strip() for question in questions):
            raise InputError("the question is empty", hint="say what you want to know")
        self._tools = tools
        self._document = source
        self._question = questions[0] if questions else None
        self._config = config or HgMemConfig()
        self._identity = identity
        known = None if identity is None else find_graph_before(tools.store, identity, self._config)
        own = GraphConfig.of(self._config)
        self._graph = graph or DocumentGraph(tools, source, (), own, identity=known)

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        if self._question is None:
            return self._graph.id
        return memory_id(
            KIND,
            self._config.model_dump(mode="json"),
            self._tools.llm.model_id,
            writing_prompts(self._config, self._question.form),
            document=self._document.id,
            graph=self._graph.id,
            questions=[self._question.text],
            embedder=self._tools.required_embedder.model_id,
        )

    async def build(self) -> None:
        """Build the graph, then take the question's steps, from where the logs end."""
        if self._question is not None and self.is_built():
            return
        await self._graph.build()
        if self._question is None:
            return
        store, config = self._tools.store, self._config
        graph, chunks = self._graph.graph(), self._graph.chunks()
        store.put_memory(
            MemoryRecord(
                id=self.id,
                kind=KIND,
                document_id=self._document.id,
                questions=(self._question.text,),
                model_id=self._tools.llm.model_id,
                config=config.model_dump(mode="json"),
                chunks=0,
                tokens=store.memory(self._graph.id).tokens,
            )
        )
        evidence = Evidence(graph, await self._graph.index(), self._tools.required_embedder, config)
        await Loop(self._tools, self.id, self._question, evidence, chunks, config).run()

    async def retry_failed(self) -> None:
        """Read the graph's failed chunks once more, then build; a question whose loop has ended
        keeps its answer."""
        await self._graph.retry_failed()
        await self.build()

    async def estimate(self) -> Estimate:
        """What the graph would cost; what a question costs is known when it has been asked."""
        return await self._graph.estimate()

    def is_built(self) -> bool:
        """Whether the question's loop has ended."""
        return self._question is not None and is_finished(self._tools.store.edits(self.id))

    def memory(self, *, steps: int | None = None) -> Memory:
        """The memory as the log gives it; with ``steps``, as it was after that many of them."""
        rows = self._tools.store.edits(self.id)
        return replay(edits_of(row for row in rows if steps is None or row.chunk < steps))

    async def answer(self, question: Question) -> Answer:
        """Answer from the memory of this question (builds what is missing first).

        ReplyInvalid where the model gave no reply that could be used.
        """
        if not question.text.strip():
            raise InputError("the question is empty", hint="say what you want to know")
        mine = self._question
        if mine is None or (question.text, question.form) != (mine.text, mine.form):
            own = HgMem(self._tools, self._document, [question], self._config, graph=self._graph)
            return await own.answer(question)
        await self.build()
        rows = self._tools.store.edits(self.id)
        responses = [said for row in rows if isinstance(said := read(row), Respond)]
        if not responses or rows[-1].payload["reason"] == "failed":
            raise ReplyInvalid(
                "the model gave no answer that could be used",
                hint="`mgl show` tells which reply failed; use a larger reply budget or model",
            )
        last, memory = responses[-1], self.memory()
        return Answer(
            question=question.text,
            text=last.text,
            confidence="medium" if last.chunks else "low",
            citations=tuple(self._citation(number, memory) for number in last.chunks),
            trace=(
                f"entities and chunks by {self._tools.required_embedder.model_id}",
                *trace(rows, self._graph.graph()),
            ),
            retrieved=tuple(self._graph.chunks()[number].span.place for number in last.read),
        )

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The hypergraph as exporters draw it; without a question the graph."""
        if self._question is None:
            return self._graph.view(answers)
        record = self._tools.store.memory(self.id)
        rows = self._tools.store.edits(self.id)
        nodes, edges = drawn(rows, self._graph.graph(), self._graph.chunks())
        return GraphView(
            memory_id=self.id,
            memory=KIND,
            model=record.model_id,
            document=self._document,
            questions=record.questions,
            steps=self._tools.store.steps(self.id),
            nodes=nodes,
            edges=edges,
            answers=tuple(answers),
        )

    def _citation(self, number: int, memory: Memory) -> Citation:
        """A chunk, under the first entity of the memory that is tied to it, or its own number."""
        chunk = self._graph.chunks()[number]
        tied = (vertex.id for vertex in memory.vertices.values() if number in vertex.chunks)
        return Citation(
            node_id=next(tied, f"chunk-{number}"),
            document=self._document.name,
            span=chunk.span,
            quote=self._document.quote(chunk.span),
            section=self._document.section_at(chunk.span.start),
        )
