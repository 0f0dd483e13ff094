"""The entity graph of a document as a memory: it is built and shown, and answers nothing itself.

    graph = DocumentGraph(tools, document)
    await graph.build()
    index = await graph.index()

Source: HGMem §3.1 and §4.2, offline graph construction. One graph of a document, a model and a
``GraphConfig`` is shared by every question and method, and is never changed by any.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NoReturn

from mgl.errors import UsageError
from mgl.memories.base import Tools, memory_id
from mgl.memories.graph.by_terms import describe_by_sentences, read_terms
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import failures
from mgl.memories.graph.estimate import Estimate, estimated
from mgl.memories.graph.extract import describe_all, read_chunks, writing_prompts
from mgl.memories.graph.fold import fold
from mgl.memories.graph.index import GraphIndex
from mgl.memories.graph.retry import read_failed, undescribed
from mgl.memories.graph.state import EntityGraph
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.store import MemoryRecord, Store
from mgl.text import window_document
from mgl.types import Answer, Chunk, Document, Question, Source

__all__ = ["KIND", "DocumentGraph", "graph_before"]

KIND = "graph"


class DocumentGraph:
    """The graph of one document. ``id`` is a hash of all that decides its log."""

    reads: Final = "document"
    retrieves: Final = False
    per_question: Final = False
    question_aware: Final = False
    Config = GraphConfig

    def __init__(
        self,
        tools: Tools,
        source: Source,
        questions: Sequence[Question] = (),
        config: GraphConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        if not isinstance(source, Document):
            raise UsageError(
                f"an entity graph is made of a document, and {source.name} is a conversation",
                hint="--memory gam remembers conversations",
            )
        if questions:
            raise UsageError(
                "an entity graph is the same for every question",
                hint="build it without one, and ask with --memory hgmem",
            )
        self._tools = tools
        self._document = source
        self._config = GraphConfig.of(config or GraphConfig())
        self._identity = identity
        self._known: tuple[EntityGraph, tuple[Chunk, ...]] | None = None
        self._index: GraphIndex | None = None

    @property
    def id(self) -> str:
        if self._identity is not None:
            return self._identity
        return memory_id(
            KIND,
            self._recorded,
            self._tools.llm.model_id,
            writing_prompts(self._config),
            document=self._document.id,
        )

    async def build(self) -> None:
        """Read the document into the log, from where the log ends."""
        store = self._tools.store
        if self.is_built():
            return
        store.put_document(self._document)
        chunks = await self._windows()
        count = self._tools.llm.count_tokens
        text = self._document.text
        starts = [0, *(chunk.span.end for chunk in chunks)]
        tokens = await count([text[a:b] for a, b in pairwise(starts)]) if chunks else []
        store.put_memory(
            MemoryRecord(
                id=self.id,
                kind=KIND,
                document_id=self._document.id,
                questions=(),
                model_id=self._tools.llm.model_id,
                config=self._recorded,
                chunks=len(chunks),
                tokens=sum(tokens),
            )
        )
        if self._config.extraction == "terms":
            read_terms(self._tools, self.id, self._document, chunks)
            await describe_by_sentences(self._tools, self.id, len(chunks), self._config)
        else:
            await read_chunks(self._tools, self.id, self._document, chunks, self._config)
            await describe_all(self._tools, self.id, len(chunks), self._config)

    def is_built(self) -> bool:
        """Whether every chunk, and the step behind the last, is in the log."""
        known = [memory for memory in self._tools.store.memories() if memory.id == self.id]
        return bool(known) and len(self._tools.store.chunks_done(self.id)) > known[0].chunks

    async def retry_failed(self) -> None:
        """Build what is missing, then read the chunks that failed once more.

        What is in the log stays, and so does what was answered over the graph. Raises what
        LLM.complete raises, but for the failures of one chunk.
        """
        await self.build()
        store, observer = self._tools.store, self._tools.observer
        failed = self.failed()
        observer.note(f"{len(failed)} failed chunks are read again")
        if failed:
            await read_failed(self._tools, self.id, self._document, self.chunks(), self._config)
        steps, count = store.steps(self.id), store.memory(self.id).chunks
        if told := undescribed(store.edits(self.id), steps, count):
            await describe_all(self._tools, self.id, steps, self._config, among=told)
        self._known = self._index = None

    def graph(self) -> EntityGraph:
        """The graph as the log gives it."""
        return self._read()[0]

    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks as the log has them, in reading order."""
        return self._read()[1]

    def failed(self) -> tuple[int, ...]:
        """The chunks that gave no reply that could be used, in reading order; none of those that
        did when they were read again."""
        return tuple(failures(self._tools.store.edits(self.id)))

    async def index(self) -> GraphIndex:
        """The graph's vectors (builds what is missing first)."""
        embedder, observer = self._tools.required_embedder, self._tools.observer
        await self.build()
        if self._index is None:
            observer.progress("index", 0, 1)
            self._index = await GraphIndex.open(embedder, self.graph(), self.chunks())
            observer.progress("index", 1, 1)
        return self._index

    async def answer(self, question: Question) -> NoReturn:
        """Always UsageError: a graph is what others answer from."""
        del question
        raise UsageError("a graph answers nothing by itself", hint="--memory hgmem answers over it")

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The graph as exporters draw it; an element's source is its first mention."""
        graph, record = self.graph(), self._tools.store.memory(self.id)
        return GraphView(
            memory_id=self.id,
            memory=KIND,
            model=record.model_id,
            document=self._document,
            questions=(),
            steps=record.chunks,
            nodes=tuple(
                ViewNode(
                    entity.id,
                    entity.type,
                    entity.name,
                    entity.description,
                    entity.mentions[0].span,
                    entity.mentions[0].chunk,
                )
                for entity in graph.entities.values()
            ),
            edges=tuple(
                ViewEdge(
                    relation.id,
                    relation.source,
                    relation.target,
                    relation.description,
                    relation.mentions[0].span,
                    relation.mentions[0].chunk,
                )
                for relation in graph.relations.values()
            ),
            answers=tuple(answers),
        )

    async def estimate(self) -> Estimate:
        """What building what is missing would cost; no call is made."""
        done = self._tools.store.chunks_done(self.id)
        chunks = await self._windows()
        return await estimated(self._tools, self._document, chunks, done, self._config)

    def _read(self) -> tuple[EntityGraph, tuple[Chunk, ...]]:
        """Graph and chunks of the log, kept once it is finished."""
        if self._known is not None:
            return self._known
        finished = self.is_built()
        rows = self._tools.store.edits(self.id)
        chunks = tuple(
            Chunk(row.chunk, row.span, self._document.quote(row.span), row.payload["tokens"])
            for row in sorted(rows, key=lambda row: row.chunk)
            if row.op == "chunk" and row.span is not None
        )
        read = fold(rows), chunks
        if finished:
            self._known = read
        return read

    @property
    def _recorded(self) -> dict[str, Any]:
        return _recorded(self._config)

    async def _windows(self) -> list[Chunk]:
        llm = self._tools.llm
        config = self._config
        return await window_document(
            self._document, config.chunk_tokens, config.overlap_tokens, llm.count_tokens
        )


def graph_before(store: Store, identity: str, config: GraphConfig) -> str | None:
    """The id of the graph that a memory which is in the store stands on: of those of its document,
    its model and this configuration, whatever prompts they were built with, the newest that was
    begun before it. None where there is none."""
    records = store.memories()
    place = next(place for place, record in enumerate(records) if record.id == identity)
    own, wanted = records[place], _recorded(GraphConfig.of(config))
    for record in records[place + 1 :]:
        of = record.kind, record.document_id, record.model_id, record.config
        if of == (KIND, own.document_id, own.model_id, wanted):
            return record.id
    return None


def _recorded(config: GraphConfig) -> dict[str, Any]:
    """A configuration without what decides the pace alone."""
    return config.model_dump(mode="json", exclude={"in_flight"})
