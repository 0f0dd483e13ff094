"""One call that writes down what a text tells, in so many tokens: summaries, gists, notes.

    note = await noted(llm, "Shorten this. …", 200, stage="gist")

Methods that read a source piece after piece share it; the prompt is theirs. A note is decoded under
a schema, so that it ends within its budget, and cut where an engine did not hold it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, create_model

from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.llm.base import LLM, Sampling
from mgl.llm.constraints import bounded
from mgl.llm.fitting import room, shortened
from mgl.llm.reader import reader_messages

__all__ = ["Note", "check_room", "noted"]

TOKEN_CHARS = 4
JSON_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Note:
    """``problem`` says why there was no reply that could be used; the text is another's then."""

    text: str
    call_key: str | None = None
    problem: str | None = None


class _Noted(BaseModel):
    model_config = ConfigDict(extra="forbid")

    notes: str


async def noted(llm: LLM, prompt: str, tokens: int, *, stage: str, instead: str = "") -> Note:
    """A note of at most ``tokens``; ``instead`` with the problem where no reply can be used.

    The prompt asks for ``{"notes": "..."}``. Raises what LLM.complete raises, but ReplyInvalid.
    """
    text = Annotated[
        str, StringConstraints(strip_whitespace=True, min_length=1), bounded(TOKEN_CHARS * tokens)
    ]
    schema = create_model("notes", __base__=_Noted, notes=(text, ...))
    sampling = Sampling(max_tokens=tokens + JSON_TOKENS)
    try:
        reply = await llm.complete(reader_messages(prompt), schema, sampling=sampling, stage=stage)
    except ReplyInvalid as error:
        return Note(instead, problem=error.message)
    assert reply.parsed is not None
    (kept,) = await shortened(llm, [reply.parsed.notes], tokens)
    return Note(kept, reply.call_key)


def check_room(llm: LLM, tokens: int, option: str, *, reserve: int) -> None:
    """ContextOverflow where texts of so many tokens do not fit the model's context beside
    ``reserve`` and a prompt; ``option`` is what sets their size."""
    there = room(llm, 1, reserve=reserve)
    if tokens > there:
        raise ContextOverflow(
            f"{tokens:,} tokens of text, and {reserve:,} for notes and question, do not fit the "
            f"model's context of {llm.context_tokens:,}",
            hint=f"set {option} to {there} or less"
            if there > 0
            else "use a model with a longer context, or let notes have fewer tokens",
        )
