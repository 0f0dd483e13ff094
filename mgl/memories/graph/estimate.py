"""What building a graph would cost, before it is built."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mgl.llm.concurrency import for_each
from mgl.memories.base import Tools
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import Passage
from mgl.memories.graph.extract import EXTRACT_STAGE, asked, schema_of
from mgl.types import Chunk, Document

__all__ = ["Estimate", "estimated"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is still to be done: calls, tokens and wall time.

    ``chunks`` is all that the document has, ``done`` how many of them are in the log.
    ``input_tokens`` are those of the prompts, chat template included; with gleanings they are
    what these read at least. ``output_tokens`` and ``seconds`` are reckoned from ``measured``
    calls that this model made for graphs on this machine, and None where it made none.
    Summaries of long descriptions come on top.
    """

    chunks: int
    done: int
    calls: int
    input_tokens: int
    output_tokens: int | None
    seconds: float | None
    measured: int


async def estimated(
    tools: Tools,
    document: Document,
    chunks: Sequence[Chunk],
    done: Collection[int],
    config: GraphConfig,
) -> Estimate:
    """The cost of the chunks that are not ``done``; it counts tokens, and makes no call."""
    passages = (Passage.of(document, chunk) for chunk in chunks if chunk.index not in done)
    calls = tokens = counted = 0
    missing = len(chunks) - sum(chunk.index in done for chunk in chunks)

    async def count(passage: Passage) -> None:
        nonlocal calls, tokens, counted
        if passage.sentences and config.extraction == "model":
            messages, schema = asked(passage, config), schema_of(passage, config)
            prompt = await tools.llm.count_prompt_tokens(messages, schema)
            calls += config.gleanings + 1
            tokens += prompt * (config.gleanings + 1)
        counted += 1
        tools.observer.progress("count", counted, missing)

    await for_each(passages, count, at_once=config.in_flight)
    pace = tools.store.pace(tools.llm.model_id, EXTRACT_STAGE)
    return Estimate(
        chunks=len(chunks),
        done=len(chunks) - missing,
        calls=calls,
        input_tokens=tokens,
        output_tokens=None if pace is None else round(calls * pace.output_tokens / pace.calls),
        seconds=None if pace is None else calls * pace.seconds / pace.calls,
        measured=0 if pace is None else pace.calls,
    )
