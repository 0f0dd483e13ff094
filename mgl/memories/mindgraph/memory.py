"""MindGraph as a memory: one document, its questions, a configuration; build it, ask it, show it.

    memory = await MindGraph.open(tools, document, [Question("Who is Irene Adler?")])
    await memory.build()
    answer = await memory.answer(Question("Who is Irene Adler?"))

A graph is tied to the questions it was built for (§3.2). Modes beyond the paper: several
questions share one graph, or none is known when it is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Final

from mgl.errors import InputError
from mgl.memories.base import Tools, check_text, memory_id
from mgl.memories.mindgraph.answer import answer_from_graph
from mgl.memories.mindgraph.build import build_graph, writing_prompts
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.edits import resolved
from mgl.memories.mindgraph.small.answer import answer_small
from mgl.memories.mindgraph.small.build import build_small, small_writing_prompts
from mgl.memories.mindgraph.state import Graph, Node, replay
from mgl.memories.mindgraph.tools import GraphTools
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.prompt import Prompt
from mgl.store import MemoryRecord
from mgl.text import chunk_document
from mgl.types import Answer, Document, Question

__all__ = ["KIND", "MindGraph"]

KIND = "mindgraph"
LABEL_CHARACTERS = 40


class MindGraph:
    """A concept graph of one document.

    ``id`` is a hash of all that decides its log, the size of chunks that a short context allows
    among it; ``identity`` stands for it where a memory that is in the store is opened again.
    """

    reads: Final = "document"
    retrieves: Final = False
    per_question: Final = False
    question_aware: Final = True
    Config = MindGraphConfig

    def __init__(
        self,
        tools: Tools,
        document: Document,
        questions: Sequence[Question] = (),
        config: MindGraphConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        self._identity = identity
        self._tools = tools
        self._document = document
        self._questions = tuple(questions)
        self._config = config or MindGraphConfig()
        if any(not question.text.strip() for question in self._questions):
            raise InputError("the question is empty", hint="say what you want to know")

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        return memory_id(
            KIND,
            self._building.model_dump(mode="json"),
            self._tools.llm.model_id,
            self._writing_prompts(),
            document=self._document.id,
            questions=[question.text for question in self._questions],
        )

    async def build(self) -> None:
        """Read the document into the log, from where the log ends.

        InputError for a document without text.
        """
        check_text(self._document)
        store = self._tools.store
        store.put_document(self._document)
        if self.is_built():
            return
        config = self._building
        if config != self._config:
            self._tools.observer.note(
                f"chunks have {config.tokens_per_chunk:,} tokens, half of the model's context, "
                f"in place of {self._config.tokens_per_chunk:,}"
            )
        chunks = await chunk_document(
            self._document, config.tokens_per_chunk, self._tools.llm.count_tokens
        )
        store.put_memory(
            MemoryRecord(
                id=self.id,
                kind=KIND,
                document_id=self._document.id,
                questions=tuple(question.text for question in self._questions),
                model_id=self._tools.llm.model_id,
                config=config.model_dump(mode="json"),
                chunks=len(chunks),
                tokens=sum(chunk.tokens for chunk in chunks),
            )
        )
        build = build_small if config.preset == "small" else build_graph
        await build(self._tools, self.id, self._document, chunks, self._questions, config)

    def is_built(self) -> bool:
        """Whether every chunk of the document is in the log."""
        known = [memory for memory in self._tools.store.memories() if memory.id == self.id]
        return bool(known) and len(self._tools.store.chunks_done(self.id)) == known[0].chunks

    def graph(self, *, steps: int | None = None) -> Graph:
        """The graph as the log gives it; with ``steps``, as it was after that many chunks."""
        edits = (
            resolved(row)
            for row in self._tools.store.edits(self.id)
            if steps is None or row.chunk < steps
        )
        return replay(edit for edit in edits if edit is not None)

    async def answer(self, question: Question) -> Answer:
        """Answer from the finished graph (builds what is missing first)."""
        if not question.text.strip():
            raise InputError("the question is empty", hint="say what you want to know")
        await self.build()
        record = self._tools.store.memory(self.id)
        graph = self.graph()
        if self._config.preset == "small":
            return await answer_small(
                self._tools,
                self._document,
                graph,
                self._support(),
                record.questions,
                question,
                self._config,
                source_tokens=record.tokens,
            )
        tools = GraphTools(self._tools, self.id, self._document, graph, self._config)
        return await answer_from_graph(
            self._tools.llm,
            tools,
            question,
            chunks=record.chunks,
            source_tokens=record.tokens,
        )

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The graph as exporters draw it."""
        graph, record = self.graph(), self._tools.store.memory(self.id)
        return GraphView(
            memory_id=self.id,
            memory=KIND,
            model=record.model_id,
            document=self._document,
            questions=record.questions,
            steps=record.chunks,
            nodes=tuple(
                ViewNode(node.id, node.type, self._label(node), node.content, node.span, node.chunk)
                for node in graph.nodes
            ),
            edges=tuple(
                ViewEdge(edge.id, edge.source, edge.target, edge.relation, edge.span, edge.chunk)
                for edge in graph.edges
            ),
            answers=tuple(answers),
        )

    @property
    def _building(self) -> MindGraphConfig:
        """The configuration that the log is written with, by this model's context."""
        return self._config.within(self._tools.llm.context_tokens)

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        if self._config.preset == "small":
            return small_writing_prompts(self._questions)
        return writing_prompts(self._questions, self._config)

    def _label(self, node: Node) -> str:
        """The id, which a model chose to be readable; the small preset's claims have numbers."""
        if self._config.preset == "small" and node.type == "claim":
            return shorten(node.content, LABEL_CHARACTERS, placeholder="…")
        return node.id

    def _support(self) -> dict[str, float]:
        """How well its block supports each claim of preset small, by node id."""
        return {
            str(row.payload["id"]): row.score
            for row in self._tools.store.edits(self.id)
            if row.op == "add_node" and row.outcome == "applied" and row.score is not None
        }
