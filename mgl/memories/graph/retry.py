"""Reading once more the chunks of a finished graph that gave no reply which could be used.

Each such chunk is a step of the log behind those of the build, so that what is there stays as it
is; it has the place in the graph that it would have had. Once all are through, the descriptions
that have come to be too long are summarised, in a step of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.llm.concurrency import for_each
from mgl.memories.base import Tools
from mgl.memories.graph.config import GraphConfig
from mgl.memories.graph.edits import Passage, Rows, again, chunks_read_again, failures
from mgl.memories.graph.extract import (
    EXTRACT_STAGE,
    FAILURES,
    again_sampling,
    extract,
    reason_of,
)
from mgl.memories.graph.fold import Kind, gather
from mgl.store import EditRecord
from mgl.types import Chunk, Document

__all__ = ["read_failed", "undescribed"]


async def read_failed(
    tools: Tools,
    memory_id: str,
    document: Document,
    chunks: Sequence[Chunk],
    config: GraphConfig,
) -> None:
    """Read each failed chunk once more, with a seed that none of its calls had; what fails again
    is recorded again. Raises what LLM.complete raises, but for the failures of one chunk."""
    failed = failures(tools.store.edits(memory_id))
    done = 0
    tools.observer.progress(EXTRACT_STAGE, done, len(failed))

    async def read(chunk: Chunk) -> None:
        nonlocal done
        passage = Passage.of(document, chunk)
        rows = Rows(passage)
        try:
            # The build has read it twice before it was recorded.
            sampling = again_sampling(config, failed[chunk.index] + 1)
            await extract(tools, passage, rows, sampling, config)
        except FAILURES as error:
            tools.observer.note(f"chunk {chunk.index} failed again: {error.message}")
            rows.fail("reply", reason_of(error), error.message)
        step = tools.store.steps(memory_id)
        tools.store.append_edits(memory_id, step, again(step, rows))
        done += 1
        tools.observer.progress(EXTRACT_STAGE, done, len(failed))

    await for_each((chunks[index] for index in failed), read, at_once=config.in_flight)


def undescribed(rows: Sequence[EditRecord], steps: int, chunks: int) -> set[tuple[Kind, str]]:
    """The entities and relations that chunks read once more tell of, since descriptions were last
    seen to. ``steps`` is how many the log has, ``chunks`` how many of them are the build's."""
    again = chunks_read_again(rows)
    last = max(step for step in range(chunks, steps) if step not in again)
    found = gather(row for row in rows if row.chunk in again and row.chunk > last)
    entities: list[tuple[Kind, str]] = [("entity", identity) for identity in found.entities]
    return {*entities, *(("relation", identity) for identity in found.relations)}
