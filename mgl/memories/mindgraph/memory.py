"""MindGraph as a memory: one document, its questions, a configuration; build it, ask it, show it.

    memory = MindGraph(tools, document, [Question("Who is Irene Adler?")])
    await memory.build()
    answer = await memory.answer(Question("Who is Irene Adler?"))

A graph is tied to the questions it was built for (§3.2). Modes beyond the paper: several
questions share one graph, or none is known when it is built. Each chunk is a step of the log; one
that failed and is read once more is a step behind all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from mgl.memories.base import LogMemory, Tools, check_question, check_text
from mgl.memories.log import count_failures
from mgl.memories.mindgraph.build import BlockReader, writing_prompts
from mgl.memories.mindgraph.config import MindGraphConfig
from mgl.memories.mindgraph.edits import Block
from mgl.memories.mindgraph.read import GraphReader
from mgl.memories.mindgraph.state import VOCABULARY, Again, Edit, Graph, Node
from mgl.memories.mindgraph.tools import GraphTools
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.prompt import Prompt
from mgl.text import chunk_document
from mgl.types import Answer, Chunk, Question, Source


class MindGraph(LogMemory[MindGraphConfig, Edit, Graph]):
    """Reads a document chunk by chunk into a graph of concepts, each with its source.

    A chunk fills half of the model's context at most.
    """

    kind = "mindgraph"
    question_aware = True
    retrieves = True
    vocabulary = VOCABULARY
    Config: ClassVar[type[MindGraphConfig]] = MindGraphConfig

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: MindGraphConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        wanted = config or self.Config()
        within = wanted.within(tools.llm.context_tokens)
        super().__init__(tools, source, questions, within, identity=identity)
        self._wanted = wanted

    async def build(self) -> None:
        """Read the document into the log, from where the log ends.

        InputError for a document without text.
        """
        check_text(self._document)
        self._tools.store.put_document(self._document)
        if self.is_built():
            return
        size, wanted = self._config.chunk_tokens, self._wanted.chunk_tokens
        if size < wanted:
            self._tools.observer.note(
                f"chunks have {size:,} tokens, half of the model's context, in place of {wanted:,}"
            )
        chunks = await self._cut()
        tokens = sum(chunk.tokens for chunk in chunks)
        self._log.open(lambda: self._record(chunks=len(chunks), tokens=tokens))
        await self._read(chunks)

    async def _read(self, chunks: Sequence[Chunk]) -> None:
        """Read the chunks that the log lacks, one a step."""
        log, total, progress = self._log, len(chunks), self._tools.observer.progress
        reader = BlockReader(self._tools, self._questions, self._config, total)
        progress("build", log.step, total)
        while log.step < total:
            draft = log.draft()
            await reader.read(draft, Block.of(self._document, chunks[log.step]))
            log.write(draft)
            progress("build", log.step, total)

    async def retry_failed(self) -> None:
        """Build what is missing, then read unread chunks once more."""
        await self.build()
        log, progress = self._log, self._tools.observer.progress
        log.catch_up()
        unread = count_failures(log.rows)
        self._tools.observer.note(f"{len(unread)} unread chunks are read again")
        chunks = await self._cut() if unread else []
        reader = BlockReader(self._tools, self._questions, self._config, len(chunks))
        for done, (index, failures) in enumerate(unread.items()):
            progress("build", done, len(unread))
            is_written = False
            while not is_written:
                draft = log.draft()
                draft.mark(Again(index))
                await reader.read(draft, Block.of(self._document, chunks[index]), time=failures)
                is_written = log.write(draft)
        progress("build", len(unread), len(unread))

    def is_built(self) -> bool:
        """Whether every chunk of the document is in the log."""
        record = self._tools.store.find_memory(self.id)
        return record is not None and self._tools.store.steps(self.id) >= record.chunks

    async def _cut(self) -> list[Chunk]:
        size, count = self._config.chunk_tokens, self._tools.llm.count_tokens
        return await chunk_document(self._document, size, count)

    async def answer(self, question: Question) -> Answer:
        """Answer from the finished graph (builds what is missing first)."""
        check_question(question)
        await self.build()
        record, graph, config = self._record(), self.state, self._config
        tools = GraphTools(self._tools, self.id, self._document, graph, config)
        answer = await GraphReader(tools, question, record.chunks, record.tokens).answer()
        if not (unread := count_failures(self._log.rows)):
            return answer
        blocks = ", ".join(str(index + 1) for index in unread)
        trace = f"{len(unread)} of {record.chunks} blocks are unread: {blocks}"
        return replace(answer, trace=(*answer.trace, trace), marks=(*answer.marks, "chunks_unread"))

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The graph as exporters draw it."""
        graph = self.state
        nodes = [
            ViewNode(node.id, node.type, self._label(node), node.content, node.span, node.chunk)
            for node in graph.nodes
        ]
        edges = [
            ViewEdge(edge.id, edge.source, edge.target, edge.relation, edge.span, edge.chunk)
            for edge in graph.edges
        ]
        return self._view(nodes, edges, steps=self._record().chunks, answers=answers)

    def _scope(self) -> dict[str, Any]:
        return {
            "document": self._source.id,
            "questions": [question.text for question in self._questions],
        }

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return writing_prompts(self._questions, self._config)

    def _label(self, node: Node) -> str:
        """What a node is called where it is drawn: its id, which the model chose to be readable."""
        return node.id
