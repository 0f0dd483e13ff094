"""The answer: from what all points say, and the chunks of all entities of the memory.

Source: HGMem §3.6; the bounds are the released code's. Where there are more chunks than fit, those
most like the query are read, in the order of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, StringConstraints, create_model

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.llm.constraints import index_set, max_chars
from mgl.llm.prompting import take_leading
from mgl.memories.hgmem.config import HgMemConfig
from mgl.memories.hgmem.edits import Respond, record
from mgl.memories.hgmem.evidence import Evidence
from mgl.memories.hgmem.prompts import ANSWER, LONG_ANSWER
from mgl.memories.hgmem.showing import shown_memory
from mgl.memories.hgmem.state import Memory
from mgl.prompt import Prompt, one_line
from mgl.store import EditRecord
from mgl.types import AnswerForm, Chunk, Question

__all__ = ["PROMPTS", "respond"]

PROMPTS: Final[Mapping[AnswerForm, Prompt]] = {"short": ANSWER, "long": LONG_ANSWER}
ANSWER_CHARS = 600
TOKEN_CHARS = 4
FRAME_TOKENS, NUMBER_TOKENS = 24, 3  # of the JSON around a long answer, and for each source
PROMPT_TOKENS = 500  # with the numbers before the sources


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sources: list[int]
    answer: str


async def respond(
    llm: LLM,
    question: Question,
    memory: Memory,
    step: int,
    evidence: Evidence,
    chunks: Sequence[Chunk],
    config: HgMemConfig,
) -> list[EditRecord]:
    """The row of the answer; a rejected one where the reply could not be used.

    Where the memory is empty, the chunks are read that are most like the query, as many as a
    subquery finds.
    """
    tied = sorted({chunk for vertex in memory.vertices.values() for chunk in vertex.chunks})
    points = shown_memory(memory)
    most = config.answer_chunks if tied else config.chunks
    best = await evidence.best_chunks(question.text, tied or None, most)
    used = sum(await llm.count_tokens([points, question.text]))
    room = llm.context_tokens - config.reply_tokens - PROMPT_TOKENS - used
    texts = [one_line(chunks[number].text) for number in best]
    fitting = await take_leading(llm, texts, min(config.answer_chunk_tokens, room))
    read = sorted(best[: len(fitting)])
    lines = [f"[{place}] {one_line(chunks[number].text)}" for place, number in enumerate(read, 1)]
    schema = _schema(len(read), question.form, config)
    prompt = PROMPTS[question.form].render(
        memory=points, sources="\n".join(lines), query=question.text
    )
    try:
        reply = await llm.complete(
            [Message("user", prompt)], schema, sampling=config.sampling(step), stage="answer"
        )
    except ReplyInvalid as error:
        return [record(step, Respond(error.message, ()), rejected="reply_invalid")]
    named = tuple(read[place - 1] for place in reply.parsed.sources if place <= len(read))
    said = Respond(one_line(reply.parsed.answer), named, tuple(best[: len(fitting)]))
    return [record(step, said, call_key=reply.call_key)]


def _schema(sources: int, form: AnswerForm, config: HgMemConfig) -> type[_Said]:
    """A long answer has what the reply's tokens leave, and never less than a short one."""
    chars = ANSWER_CHARS
    if form == "long":
        left = config.reply_tokens - FRAME_TOKENS - NUMBER_TOKENS * sources
        chars = max(chars, TOKEN_CHARS * left)
    text: Any = Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1), max_chars(chars)
    ]
    return create_model(
        "answer",
        __base__=_Said,
        sources=(index_set(max(1, sources), first=1), ...),
        answer=(text, ...),
    )
