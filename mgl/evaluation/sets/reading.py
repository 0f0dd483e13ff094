"""What a judge reads of a document that is longer than its context: a cut text, or a summary.

    read = await cut(llm, document.text, 6000)
    summary = await summarised(llm, document, 6000, config, observer)

The cut keeps the first and the last half of what fits (MindGraph and HGMem cut Direct so). The
summary is hierarchical: every chunk is summarised, then the summaries, until what is left fits.
"""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from mgl.evaluation.sets.taxonomy import SUMMARY
from mgl.llm.base import LLM, Message, Sampling
from mgl.llm.constraints import bounded
from mgl.llm.fitting import both_ends
from mgl.observer import Observer
from mgl.text.chunking import chunk_document
from mgl.types import Document

__all__ = ["SummaryConfig", "cut", "summarised"]


class SummaryConfig(BaseModel):
    """Tokens of a chunk, and of the summary made of it; ours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    chunk_tokens: int = Field(4096, ge=64)
    summary_tokens: int = Field(384, ge=16)


class _Summary(BaseModel):
    model_config = ConfigDict(extra="forbid")

    summary: Annotated[str, bounded(1200)]


async def cut(llm: LLM, text: str, tokens: int) -> str:
    """The text, or its first and last halves of ``tokens`` tokens together at most."""
    return "\n\n".join(await both_ends(llm, text, tokens))


async def summarised(
    llm: LLM, document: Document, tokens: int, config: SummaryConfig, observer: Observer
) -> str:
    """The document where it has at most ``tokens`` tokens, else summaries that together do.

    Where a level is no shorter than the one below it, it is cut. What ``LLM.complete`` raises.
    """
    [counted] = await llm.count_tokens([document.text])
    level = 0
    while counted > tokens:
        level += 1
        chunks = await chunk_document(document, config.chunk_tokens, llm.count_tokens)
        stage = f"summary of {document.name}, level {level}"
        done = 0

        async def one(text: str, stage: str = stage, total: int = len(chunks)) -> str:
            nonlocal done
            reply = await llm.complete(
                [Message("user", SUMMARY.render(text=text))],
                _Summary,
                sampling=Sampling(max_tokens=config.summary_tokens),
                stage="summary",
            )
            done += 1
            observer.progress(stage, done, total)
            return "" if reply.parsed is None else reply.parsed.summary

        parts = await asyncio.gather(*(one(chunk.text) for chunk in chunks))
        document = Document.from_text(document.name, "\n\n".join(parts))
        [fewer] = await llm.count_tokens([document.text])
        if fewer >= counted:
            return await cut(llm, document.text, tokens)
        counted = fewer
    return document.text
