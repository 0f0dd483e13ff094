"""Passages: plain retrieval, the best passages by BM25 and one call.

The text is cut into passages of whole sentences (or, where a sentence is longer, parts of one);
the ``k`` that BM25 ranks first are read in text order. NaiveRAG with a lexical index: what an
embedded memory has to beat on a machine without an embedding model.
"""

from __future__ import annotations

from pydantic import Field

from mgl.baselines.base import Baseline, BaselineConfig, Excerpt
from mgl.retrieval import LexicalIndex
from mgl.types import Answer, Question


class PassagesConfig(BaselineConfig):
    """``tokens`` bounds a passage, ``k`` is how many are read."""

    tokens: int = Field(300, ge=16)
    k: int = Field(4, ge=1)


class Passages(Baseline[None]):
    """Reads the k best passages for a question."""

    kind = "passages"
    Config = PassagesConfig
    _config: PassagesConfig

    async def _respond(self, question: Question) -> Answer:
        chunks = [chunk for chunk in await self._chunks(self._config.tokens) if chunk.text]
        scores = LexicalIndex.of([chunk.text for chunk in chunks]).scores(question.text)
        best = sorted(range(len(chunks)), key=lambda place: -scores[place])[: self._config.k]
        excerpts = [
            Excerpt(chunks[place].text, f"chunk-{place}", chunks[place].span)
            for place in sorted(best)
        ]
        return await self._answer(question, excerpts, read=[chunks[place].span for place in best])
