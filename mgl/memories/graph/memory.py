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
from typing import Any, NoReturn

from mgl.errors import UsageError, WrongKind
from mgl.memories.base import LogMemory, Tools, check_text
from mgl.memories.estimates import Estimate
from mgl.memories.graph.build import GraphBuilder
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import VOCABULARY, GraphEdit, GraphLog
from mgl.memories.graph.index import GraphIndex
from mgl.memories.graph.lightrag import describe_package
from mgl.memories.graph.prompts import EXTRACT
from mgl.memories.graph.state import EntityGraph, GraphEntity, Relation, make_graph
from mgl.memories.log import count_failures
from mgl.memories.view import GraphView, ViewEdge, ViewNode
from mgl.prompt import Prompt
from mgl.store import Store
from mgl.store.owners import owned_by
from mgl.text import window_document
from mgl.text.groups import show_span
from mgl.types import Answer, Chunk, Question, Source


class DocumentGraph(LogMemory[GraphConfig, GraphEdit, GraphLog]):
    """Reads a document into a graph of entities and relationships, which hgmem reads."""

    kind = "graph"
    vocabulary = VOCABULARY
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
        if questions:
            raise UsageError(
                "an entity graph is the same for every question",
                hint="build it without one, and ask with --memory hgmem",
            )
        own = GraphConfig.of(config or GraphConfig())
        super().__init__(tools, source, (), own, identity=identity)
        self._made: tuple[GraphLog, EntityGraph] | None = None
        self._index: GraphIndex | None = None

    @property
    def _builder(self) -> GraphBuilder:
        return GraphBuilder(self._tools, self._log, self._document, self._config)

    async def build(self) -> None:
        """Read the document into the log, from where the log ends.

        InputError for a document without text.
        """
        check_text(self._document)
        store, text = self._tools.store, self._document.text
        if self.is_built():
            return
        with owned_by(store.own(self.id, self._source.id)):  # the graph is not one question's
            chunks = await self._cut()
            starts = [0, *(chunk.span.end for chunk in chunks)]
            parts = [text[start:end] for start, end in pairwise(starts)]
            tokens = await self._tools.llm.count_tokens(parts) if chunks else []
            self._log.open(lambda: self._record(chunks=len(chunks), tokens=sum(tokens)))
            await self._builder.read_chunks(chunks)

    def is_built(self) -> bool:
        """Whether every chunk is in the log."""
        record = self._tools.store.find_memory(self.id)
        return record is not None and self._tools.store.count_done(self.id) >= record.chunks

    async def retry_failed(self) -> None:
        """Build what is missing, then read the chunks that failed once more.

        What is in the log stays, and so do answers given over the graph. Raises what LLM.complete
        raises, except the failures of one chunk.
        """
        await self.build()
        failures = count_failures(self._log.rows)
        self._tools.observer.note(f"{len(failures)} failed chunks are read again")
        with owned_by(self._tools.store.own(self.id, self._source.id, requires="memory")):
            await self._builder.read_failed(self.chunks(), failures)

    def graph(self) -> EntityGraph:
        """The graph as the log gives it."""
        state = self.state
        if self._made is None or self._made[0] is not state:
            self._made, self._index = (state, make_graph(state)), None
        return self._made[1]

    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks of the log in reading order, with their texts as a model reads them."""
        return tuple(
            Chunk(number, read.span, show_span(self._document, read.span), read.tokens)
            for number, read in sorted(self.state.passages.items())
        )

    async def index(self) -> GraphIndex:
        """The graph's vectors (builds what is missing first)."""
        embedder, observer = self._tools.required_embedder, self._tools.observer
        await self.build()
        graph = self.graph()
        if self._index is None:
            observer.progress("index", 0, 1)
            self._index = await GraphIndex.open(embedder, graph, self.chunks())
            observer.progress("index", 1, 1)
        return self._index

    async def estimate(self) -> Estimate:
        """What the rest of the build would cost; no call is made."""
        return await self._builder.estimate(await self._cut())

    async def answer(self, question: Question) -> NoReturn:
        """Always UsageError: a graph is what others answer from."""
        del question
        raise WrongKind("a graph answers nothing by itself", hint="--memory hgmem answers over it")

    def view(self, answers: Sequence[Answer] = ()) -> GraphView:
        """The graph as exporters draw it; an element's source is its first mention."""
        graph = self.graph()

        def node(entity: GraphEntity) -> ViewNode:
            first, text = entity.mentions[0], entity.description
            return ViewNode(entity.id, entity.type, entity.name, text, first.span, first.chunk)

        def edge(relation: Relation) -> ViewEdge:
            first, text = relation.mentions[0], relation.description
            ends = relation.source, relation.target
            return ViewEdge(relation.id, *ends, text, first.span, first.chunk)

        nodes = [node(entity) for entity in graph.entities.values()]
        edges = [edge(relation) for relation in graph.relations.values()]
        return self._view(nodes, edges, steps=self._record().chunks, answers=answers)

    def _writing_prompts(self) -> tuple[Prompt, ...]:
        return (EXTRACT,) if self._config.extraction == "model" else ()

    def _scope(self) -> dict[str, Any]:
        peer = describe_package() if self._config.extraction == "lightrag" else {}
        return {**super()._scope(), **peer}

    async def _cut(self) -> list[Chunk]:
        size, overlap = self._config.chunk_tokens, self._config.overlap_tokens
        return await window_document(self._document, size, overlap, self._tools.llm.count_tokens)


def find_graph_before(store: Store, identity: str, config: GraphConfig) -> str | None:
    """Find the graph that a stored memory was built with: the newest one begun before it that has
    the same document, model and configuration, whatever its prompts; None if nothing matches. The
    pace, and options of an earlier version, make no difference."""
    records = store.memories()
    place = next(place for place, record in enumerate(records) if record.id == identity)
    own, wanted = records[place], GraphConfig.of(config).model_dump(mode="json")
    for record in records[place + 1 :]:
        built = {name: record.config.get(name) for name in wanted} | {"in_flight": config.in_flight}
        of = record.kind, record.document_id, record.model_id, built
        if of == (DocumentGraph.kind, own.document_id, own.model_id, wanted):
            return record.id
    return None
