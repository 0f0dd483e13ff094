"""The answer: from what all points say, and the chunks of all entities of the memory.

Source: HGMem §3.6; the bounds are the released code's. Where there are more chunks than fit, those
most like the query are read, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, create_model

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.llm.constraints import bounded, index_set
from mgl.llm.fitting import leading
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.edits import Respond, record
from mgl.memories.hgmem.evidence import Evidence
from mgl.memories.hgmem.prompts import ANSWER
from mgl.memories.hgmem.showing import shown_memory
from mgl.memories.hgmem.state import Memory
from mgl.reading import flat
from mgl.store import EditRecord
from mgl.types import Chunk

__all__ = ["NOTHING", "respond"]

NOTHING: Final = "Nothing about this was found in the document."
ANSWER_CHARS = 600
PROMPT_TOKENS = 500  # with the numbers before the sources


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sources: list[int]
    answer: Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1), bounded(ANSWER_CHARS)
    ]


async def respond(
    llm: LLM,
    query: str,
    memory: Memory,
    step: int,
    evidence: Evidence,
    chunks: Sequence[Chunk],
    config: HgMemConfig,
) -> list[EditRecord]:
    """The row of the answer; a rejected one where the reply could not be used.

    An empty memory is answered from without a call.
    """
    tied = sorted({chunk for vertex in memory.vertices.values() for chunk in vertex.chunks})
    if not tied:
        return [record(step, Respond(NOTHING, ()))]
    points = shown_memory(memory)
    best = await evidence.best_chunks(query, tied, config.answer_chunks)
    used = sum(await llm.count_tokens([points, query]))
    room = llm.context_tokens - config.reply_tokens - PROMPT_TOKENS - used
    texts = [flat(chunks[number].text) for number in best]
    fitting = await leading(llm, texts, min(config.answer_chunk_tokens, room))
    read = sorted(best[: len(fitting)])
    lines = [f"[{place}] {flat(chunks[number].text)}" for place, number in enumerate(read, 1)]
    schema = create_model(
        "answer", __base__=_Said, sources=(index_set(max(1, len(read)), first=1), ...)
    )
    prompt = ANSWER.render(memory=points, sources="\n".join(lines), query=query)
    try:
        reply = await llm.complete(
            [Message("user", prompt)], schema, sampling=config.sampling(step), stage="answer"
        )
    except ReplyInvalid as error:
        return [record(step, Respond(error.message, ()), rejected="reply_invalid")]
    assert reply.parsed is not None
    named = tuple(read[place - 1] for place in reply.parsed.sources if place <= len(read))
    said = Respond(flat(reply.parsed.answer), named, tuple(best[: len(fitting)]))
    return [record(step, said, call_key=reply.call_key)]
