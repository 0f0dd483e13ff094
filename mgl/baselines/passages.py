"""Passages: plain retrieval, the best passages by BM25 and one call.

The text is cut into passages of whole sentences (or, where a sentence is longer, parts of one);
the ``k`` that BM25 ranks first are read in text order. NaiveRAG with a lexical index: what an
embedded memory has to beat on a machine without an embedding model.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from mgl.baselines.record import Baseline
from mgl.memories.base import Tools
from mgl.reading import answer_from_passages
from mgl.retrieval import Bm25
from mgl.text import chunk_document
from mgl.types import Answer, Document, Question

__all__ = ["Passages", "PassagesConfig"]


class PassagesConfig(BaseModel):
    """``tokens`` bounds a passage, ``k`` is how many are read."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: int = Field(300, ge=16)
    k: int = Field(4, ge=1)


class Passages(Baseline):
    """Reads the k best passages for a question, and cites nothing: it has no nodes."""

    kind = "passages"
    Config = PassagesConfig

    def __init__(
        self,
        tools: Tools,
        document: Document,
        questions: Sequence[Question] = (),
        config: PassagesConfig | None = None,
        *,
        identity: str | None = None,
    ) -> None:
        self._config = config or PassagesConfig()
        super().__init__(tools, document, questions, self._config, identity=identity)

    async def answer(self, question: Question) -> Answer:
        tokens = await self.source_tokens()
        llm = self._tools.llm
        chunks = await chunk_document(self._document, self._config.tokens, llm.count_tokens)
        scores = Bm25([chunk.text for chunk in chunks]).scores(question.text)
        best = sorted(range(len(chunks)), key=lambda place: -scores[place])[: self._config.k]
        reply = await answer_from_passages(
            llm, [chunks[place].text for place in sorted(best)], question.text
        )
        return Answer(
            question=question.text,
            text=reply.text,
            confidence="low",
            citations=(),
            compaction_ratio=reply.input_tokens / tokens,
            retrieved=tuple(chunks[place].span.place for place in best),
        )
