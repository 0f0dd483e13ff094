"""NaiveRAG: the chunks most like the question by their vectors, and one call.

Source: HGMem §4.2 and Appendix (NaiveRAG): chunks of 200 tokens; adjacent ones share 50. For a fair
comparison, set ``k`` to the average number of chunks that the other method reads. A conversation is
split into groups of whole turns of that size. Chunks are read in the order of the source. Chunks
and vectors are made once per source.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt
from mgl.errors import ContextOverflow
from mgl.llm.prompting import LINE_TOKENS, available_tokens, shorten, take_leading
from mgl.memories.log import Vocabulary
from mgl.retrieval.passages import PassageIndex
from mgl.retrieval.ranking import best, likeness
from mgl.types import Answer, Chunk, Question, Span


class NaiveRagConfig(BaselineConfig):
    """``k`` chunks are read, the best of them that have ``most_tokens`` together.

    ``overlap_tokens`` of a chunk are shared with the one before. The cap is that of HGMem's
    released code. ``ranking`` is the paper's, by vectors, or by words as well, as MindGraph's
    preset ``small`` ranks its blocks: what it gains beyond that is its own.
    """

    chunk_tokens: int = Field(200, ge=16)
    overlap_tokens: int = Field(50, ge=0)
    k: int = Field(10, ge=1)
    most_tokens: int = Field(10_000, ge=16)
    ranking: Literal["vectors", "both"] = "vectors"

    @model_validator(mode="after")
    def _chunks_fit(self) -> Self:
        if self.overlap_tokens >= self.chunk_tokens:
            raise ValueError("chunks must share fewer tokens than they have")
        if self.most_tokens < self.chunk_tokens:
            raise ValueError("most_tokens must have room for one chunk")
        return self


@dataclass(frozen=True, slots=True)
class KeepChunk:
    """A chunk of the source."""

    span: Span
    tokens: int


@dataclass(frozen=True)
class ChunkLog:
    """Where the chunks stand."""

    spans: tuple[Span, ...] = ()


ChunkLogT = TypeVar("ChunkLogT", bound=ChunkLog)


def keep_chunk(log: ChunkLogT, edit: KeepChunk) -> ChunkLogT:
    """Add a chunk."""
    return replace(log, spans=(*log.spans, edit.span))


def share_out(count: int, parts: int) -> list[int]:
    """Share a number among so many parts as evenly as can be, the larger shares first.

    >>> share_out(7, 3)
    [3, 2, 2]
    """
    return [count // parts + (place < count % parts) for place in range(parts)]


class NaiveRag(Baseline[Any]):
    """Reads the k best chunks for a question; of a conversation it cites chunks."""

    kind = "naive-rag"
    reads = "either"
    retrieves = True
    vocabulary = Vocabulary({"chunk": KeepChunk}, keep_chunk, ChunkLog(), columns=("span",))
    Config = NaiveRagConfig
    _config: NaiveRagConfig

    async def _read(self) -> None:
        store, embedder = self._tools.store, self._tools.required_embedder
        if store.count_done(self.id):
            return
        chunks = await self._cut()
        if chunks:
            await asyncio.to_thread(embedder.embed, [chunk.text for chunk in chunks])
        draft = self._log.draft(0)
        for chunk in chunks:
            draft.put(KeepChunk(chunk.span, chunk.tokens), turns=())
        self._write(draft)

    async def _cut(self) -> Sequence[Chunk]:
        return await self._windows(self._config.chunk_tokens, self._config.overlap_tokens)

    async def _respond(self, question: Question) -> Answer:
        """ContextOverflow where the context has no room for any text."""
        spans = self.state.spans
        texts = [self._quote(span) for span in spans]
        found, trace = await self._rank(question, texts)
        found = [(place, score) for place, score in found if texts[place]]
        places = [place for place, _ in found]
        read, whole = await self._fit_chunks(question, [texts[place] for place in places])
        kept = sorted(zip(places, read, strict=False))
        excerpts = [Excerpt(text, f"chunk-{place}", spans[place]) for place, text in kept]
        scores = ", ".join(f"chunk-{place} {score:.3f}" for place, score in found)
        trace = [*trace, f"retrieved {scores}; read {len(read)} of {len(spans)} chunks"]
        marks = () if whole else ("text_truncated",)
        ranked = [spans[place] for place in places[: len(read)]]
        return await self._answer(question, excerpts, read=ranked, trace=trace, marks=marks)

    async def _rank(
        self, question: Question, texts: Sequence[str]
    ) -> tuple[list[tuple[int, float]], list[str]]:
        """Choose the chunks to read, by their places and scores, best first; and how, if it is
        worth a word."""
        embedder, k = self._tools.required_embedder, self._config.k
        if self._config.ranking == "vectors":
            return best(await likeness(embedder, question.text, texts), k), []
        scores = await asyncio.to_thread(
            lambda: PassageIndex(embedder, texts).scores(question.text)
        )
        return best(scores, k), ["chunks by words and vectors"]

    async def _fit_chunks(self, question: Question, texts: Sequence[str]) -> tuple[list[str], bool]:
        """The first texts that fit together, or the beginning of the first where none does."""
        if not texts:
            return [], True
        llm = self._tools.llm
        there = available_tokens(llm, len(texts), reserve=await self._reserve(question))
        most = min(self._config.most_tokens, there)
        kept = await take_leading(llm, texts, most)
        if kept:
            return kept, True
        (first,) = await shorten(llm, texts[:1], max(0, most + LINE_TOKENS * (len(texts) - 1)))
        if not first:
            raise ContextOverflow(
                f"a context of {llm.context_tokens:,} tokens has no room for a chunk",
                hint="use a model with a longer context",
            )
        return [first], False
