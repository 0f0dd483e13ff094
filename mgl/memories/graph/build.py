"""Reading a document into the log of its graph: many chunks at once, each a step of its own.

Source: HGMem §4.2, which leaves the extraction to LightRAG. A chunk whose reply cannot be used, or
comes too late, is read once more when all others are through, then logged as failed: it never stops
the document. A chunk in which nothing is found is no failure.

A failed chunk of a finished graph can be read again: it is then a step behind all others, so that
the log keeps its rows, and what it says has the place in the graph that it would have had.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final

from mgl.llm.base import Message, Sampling
from mgl.llm.concurrency import for_each
from mgl.memories.base import Tools
from mgl.memories.estimates import Estimate
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import (
    ENTITY_TYPES,
    Extraction,
    NumberedChunk,
    Rows,
    extraction_schema,
)
from mgl.memories.graph.lightrag import CALLS, collect_rows, extract_graph
from mgl.memories.graph.prompts import EXTRACT
from mgl.memories.propose import FAILURES, Proposal, propose, vary
from mgl.prompt import one_line
from mgl.store import EditRecord
from mgl.text.names import find_names, find_nouns
from mgl.types import Chunk, Document

STAGE: Final = "extract"
REPLY_TOKENS: Final = 1024


def build_messages(passage: NumberedChunk) -> list[Message]:
    """The prompt that asks what a passage, of one sentence at least, tells of."""
    types = ", ".join(ENTITY_TYPES)
    return [Message("user", EXTRACT.render(entity_types=types, text=passage.number_sentences()))]


@dataclass(frozen=True, slots=True)
class GraphBuilder:
    """Writes the log of one document's graph.

    ``FAILURES`` end one chunk. Whatever else a call raises is raised; the log keeps what it has.
    """

    tools: Tools
    memory_id: str
    document: Document
    config: GraphConfig

    async def read_chunks(self, chunks: Sequence[Chunk]) -> None:
        """Read the chunks the log lacks."""
        missing = self._find_missing(chunks)
        if self.config.extraction == "terms":
            self._read_terms(missing, len(chunks))
            return
        if self.config.extraction == "lightrag":
            await self._read_lightrag(missing, chunks)
            return
        observer, failed = self.tools.observer, list[Chunk]()
        done = len(chunks) - len(missing)

        def write(rows: Rows) -> None:
            nonlocal done
            self._append(rows.chunk.index, rows.rows)
            done += 1
            observer.progress(STAGE, done, len(chunks))

        async def read(chunk: Chunk) -> None:
            rows = Rows(NumberedChunk.of(self.document, chunk))
            problem = await self._extract(rows)
            if problem is None:
                write(rows)
                return
            if not failed:
                observer.note(
                    f"chunk {chunk.index} gave no reply that can be used: {problem.problem}; "
                    "such chunks are read once more at the end"
                )
            failed.append(chunk)

        async def read_again(chunk: Chunk) -> None:
            write(await self._read_again(chunk, 1, "failed"))

        observer.progress(STAGE, done, len(chunks))
        await for_each(missing, read, at_once=self.config.in_flight)
        failed.sort(key=lambda chunk: chunk.index)
        await for_each(failed, read_again, at_once=self.config.in_flight)

    async def read_failed(self, chunks: Sequence[Chunk], failures: Mapping[int, int]) -> None:
        """Read failed chunks once more, each as a new last step, with a seed that none of its
        calls had; what fails again is recorded again. ``failures`` says how often each chunk
        failed, by its number."""
        store, done = self.tools.store, 0
        self.tools.observer.progress(STAGE, done, len(failures))

        async def read(chunk: Chunk) -> None:
            nonlocal done
            # The build has read it twice before it was recorded.
            rows = await self._read_again(chunk, failures[chunk.index] + 1, "failed again")
            step = store.steps(self.memory_id)
            self._append(step, rows.as_step(step))
            done += 1
            self.tools.observer.progress(STAGE, done, len(failures))

        failed = (chunks[index] for index in failures)
        await for_each(failed, read, at_once=self.config.in_flight)

    async def _read_again(self, chunk: Chunk, time: int, what: str) -> Rows:
        """Read a chunk for the ``time``-th time after the first."""
        rows = Rows(NumberedChunk.of(self.document, chunk))
        if (problem := await self._extract(rows, time)) is not None:
            self.tools.observer.note(f"chunk {chunk.index} {what}: {problem.problem}")
            rows.fail(STAGE, problem.problem, reason=problem.reason)
        return rows

    async def _extract(self, rows: Rows, time: int = 0) -> Proposal[Extraction] | None:
        """Ask what a passage tells of and put it into its rows; the proposal where no reply could
        be used. Each ``time`` after the first is warm, with a seed of its own."""
        passage = rows.passage
        if not passage.sentences:
            return None
        sampling = vary(Sampling(max_tokens=REPLY_TOKENS), time)
        messages, schema = build_messages(passage), extraction_schema(len(passage.sentences))
        said = await propose(
            self.tools.llm, messages, schema, sampling=sampling, stage=STAGE, forgive=FAILURES
        )
        if said.reply is None:
            return said
        rows.take(said.reply, said.call_key)
        return None

    async def _read_lightrag(self, missing: Sequence[Chunk], chunks: Sequence[Chunk]) -> None:
        if not missing:
            return
        graph = await extract_graph(self.tools, self.document, self.config)
        rows = collect_rows(self.document, chunks, graph)
        for chunk in missing:
            self._append(chunk.index, rows[chunk.index].rows)

    def _read_terms(self, missing: Sequence[Chunk], total: int) -> None:
        terms = find_terms(self.document.text)
        for chunk in missing:
            rows = Rows(NumberedChunk.of(self.document, chunk))
            put_terms(rows, terms)
            self._append(chunk.index, rows.rows)
            self.tools.observer.progress("terms", chunk.index + 1, total)

    async def estimate(self, chunks: Sequence[Chunk]) -> Estimate:
        """The cost of the chunks the log lacks. Counts tokens and makes no call; of LightRAG's
        prompts those of the chunks alone."""
        config, llm, missing = self.config, self.tools.llm, self._find_missing(chunks)
        calls = tokens = counted = 0

        async def count(chunk: Chunk) -> None:
            nonlocal calls, tokens, counted
            passage = NumberedChunk.of(self.document, chunk)
            if passage.sentences and config.extraction == "model":
                schema = extraction_schema(len(passage.sentences))
                own = await llm.count_prompt_tokens(build_messages(passage), schema)
                tokens += own  # others were counted meanwhile
                calls += 1
            if config.extraction == "lightrag":
                tokens += CALLS * chunk.tokens
                calls += CALLS
            counted += 1
            self.tools.observer.progress("count", counted, len(missing))

        await for_each(missing, count, at_once=config.in_flight)
        done, pace = len(chunks) - len(missing), self.tools.store.pace(llm.model_id, STAGE)
        return Estimate(calls, tokens, chunks=len(chunks), done=done).at([(pace, calls)])

    def _find_missing(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        done = self.tools.store.chunks_done(self.memory_id)
        return [chunk for chunk in chunks if chunk.index not in done]

    def _append(self, step: int, rows: Sequence[EditRecord]) -> None:
        self.tools.store.append_edits(self.memory_id, step, rows)


# Without a model: names and nouns are entities, and a sentence, which is what is said of them,
# relates those it has. A 1.5B model that is asked names the subject of each sentence anew, and
# invents what it says of it.

NAME: Final = "name"
NOUN: Final = "noun"
"""Entity types when no model classified the entity."""

Terms = Sequence[tuple[int, str, str]]
"""Where each term of a text begins, its name and its type, in the order of the text."""


def find_terms(text: str) -> Terms:
    """The names of a text, and its nouns outside of them."""
    names = find_names(text)
    inside = {place for found in names for start, end in found.spans for place in range(start, end)}
    places = [(start, found.name, NAME) for found in names for start, _ in found.spans]
    places += [
        (start, found.name, NOUN)
        for found in find_nouns(text)
        for start, _ in found.spans
        if start not in inside
    ]
    return sorted(places)


def put_terms(rows: Rows, terms: Terms) -> None:
    """Add the terms that begin in each sentence of a passage, and their relations.

    Names are related to the other names of their sentence, and every term to the one before it.
    """
    text = rows.passage.document.text
    for number, (start, end) in enumerate(rows.passage.sentences, 1):
        said = {"src": number, "description": one_line(text[start:end])}
        first, last = (bisect_left(terms, (place, "", "")) for place in (start, end))
        found = list(dict.fromkeys((name, kind) for _, name, kind in terms[first:last]))
        for name, kind in found:
            rows.entity({**said, "name": name, "type": kind})
        names = [name for name, kind in found if kind == NAME]
        neighbours = pairwise(name for name, _ in found)
        for one, other in dict.fromkeys((*combinations(names, 2), *neighbours)):
            rows.relation({**said, "source": one, "target": other})
