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
    GraphEdit,
    GraphLog,
    NumberedChunk,
    PassageDraft,
    ReadAgain,
    extraction_schema,
)
from mgl.memories.graph.lightrag import CALLS, extract_graph, put_graph
from mgl.memories.graph.prompts import EXTRACT
from mgl.memories.log import Log
from mgl.memories.propose import FAILURES, Proposal, propose, vary
from mgl.prompt import one_line
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
    log: Log[GraphEdit, GraphLog]
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
        observer, failed = self.tools.observer, list[NumberedChunk]()
        done = len(chunks) - len(missing)

        def write(passage: NumberedChunk, said: Proposal[Extraction]) -> None:
            nonlocal done
            self._write(passage, said)
            done += 1
            observer.progress(STAGE, done, len(chunks))

        async def read(chunk: Chunk) -> None:
            passage = NumberedChunk.of(self.document, chunk)
            said = await self._extract(passage)
            if said.reply is not None:
                write(passage, said)
                return
            if not failed:
                observer.note(
                    f"chunk {chunk.index} gave no reply that can be used: {said.problem}; "
                    "such chunks are read once more at the end"
                )
            failed.append(passage)

        async def read_again(passage: NumberedChunk) -> None:
            write(passage, await self._extract_again(passage, 1, "failed"))

        observer.progress(STAGE, done, len(chunks))
        await for_each(missing, read, at_once=self.config.in_flight)
        failed.sort(key=lambda passage: passage.chunk.index)
        await for_each(failed, read_again, at_once=self.config.in_flight)

    async def read_failed(self, chunks: Sequence[Chunk], failures: Mapping[int, int]) -> None:
        """Read failed chunks once more, each as a new last step, with a seed that none of its
        calls had; what fails again is recorded again. ``failures`` says how often each chunk
        failed, by its number."""
        done = 0
        self.tools.observer.progress(STAGE, done, len(failures))

        async def read(chunk: Chunk) -> None:
            nonlocal done
            passage = NumberedChunk.of(self.document, chunk)
            # The build has read it twice before it was recorded.
            time = failures[chunk.index] + 1
            said = await self._extract_again(passage, time, "failed again")
            self.log.catch_up()
            self._write(passage, said, is_again=True)
            done += 1
            self.tools.observer.progress(STAGE, done, len(failures))

        failed = (chunks[index] for index in failures)
        await for_each(failed, read, at_once=self.config.in_flight)

    def _write(
        self, passage: NumberedChunk, said: Proposal[Extraction], *, is_again: bool = False
    ) -> None:
        """Append a chunk as its step, or one that is read again as the last."""
        step = self._draft(passage, is_again=is_again)
        if said.reply is None:
            step.draft.fail(STAGE, said.problem, reason=said.reason)
        else:
            step.take(said.reply, said.call_key)
        self.log.add(step.draft)

    def _draft(self, passage: NumberedChunk, *, is_again: bool = False) -> PassageDraft:
        draft = self.log.draft(None if is_again else passage.chunk.index)
        draft.put(ReadAgain(passage.chunk.index) if is_again else passage.as_edit())
        return PassageDraft(passage, draft)

    async def _extract_again(
        self, passage: NumberedChunk, time: int, what: str
    ) -> Proposal[Extraction]:
        """Read a chunk for the ``time``-th time after the first."""
        said = await self._extract(passage, time)
        if said.reply is None:
            self.tools.observer.note(f"chunk {passage.chunk.index} {what}: {said.problem}")
        return said

    async def _extract(self, passage: NumberedChunk, time: int = 0) -> Proposal[Extraction]:
        """Ask what a passage tells of. Each ``time`` after the first is warm, with a seed of its
        own."""
        if not passage.sentences:
            return Proposal(STAGE, Extraction(entities=[], relations=[]))
        sampling = vary(Sampling(max_tokens=REPLY_TOKENS), time)
        messages, schema = build_messages(passage), extraction_schema(len(passage.sentences))
        return await propose(
            self.tools.llm, messages, schema, sampling=sampling, stage=STAGE, forgive=FAILURES
        )

    async def _read_lightrag(self, missing: Sequence[Chunk], chunks: Sequence[Chunk]) -> None:
        if not missing:
            return
        graph = await extract_graph(self.tools, self.document, self.config)
        drafts = [self._draft(NumberedChunk.of(self.document, chunk)) for chunk in chunks]
        put_graph(drafts, graph)
        for chunk in missing:
            self.log.add(drafts[chunk.index].draft)

    def _read_terms(self, missing: Sequence[Chunk], total: int) -> None:
        terms = find_terms(self.document.text)
        for chunk in missing:
            step = self._draft(NumberedChunk.of(self.document, chunk))
            put_terms(step, terms)
            self.log.add(step.draft)
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
        done = self.tools.store.chunks_done(self.log.identity)
        return [chunk for chunk in chunks if chunk.index not in done]


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


def put_terms(step: PassageDraft, terms: Terms) -> None:
    """Add the terms that begin in each sentence of a passage, and their relations.

    Names are related to the other names of their sentence, and every term to the one before it.
    """
    text = step.passage.document.text
    for number, (start, end) in enumerate(step.passage.sentences, 1):
        said = {"src": number, "description": one_line(text[start:end])}
        first, last = (bisect_left(terms, (place, "", "")) for place in (start, end))
        found = list(dict.fromkeys((name, kind) for _, name, kind in terms[first:last]))
        for name, kind in found:
            step.put_entity({**said, "name": name, "type": kind})
        names = [name for name, kind in found if kind == NAME]
        neighbours = pairwise(name for name, _ in found)
        for one, other in dict.fromkeys((*combinations(names, 2), *neighbours)):
            step.put_relation({**said, "source": one, "target": other})
