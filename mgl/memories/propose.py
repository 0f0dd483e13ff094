"""One constrained call: a validated reply, or a failure that the memory records and lives with.

    proposal = await propose(llm, prompt, Summary, sampling=sampling, stage="summary")
    if proposal.reply is None:
        draft.fail("summary", proposal.problem)

A reply that stays invalid after every retry does not stop a memory: what it was to say is missing,
a row of the log says so, and all else continues. Every other failure (a lost server, a prompt that
does not fit) is raised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message, Sampling

__all__ = ["Proposal", "propose"]

ReplyT = TypeVar("ReplyT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Proposal(Generic[ReplyT]):
    """What one call gave: ``reply``, or a ``problem`` where no reply could be used.

    ``text`` is the reply as the model wrote it, for a conversation that continues.
    """

    stage: str
    reply: ReplyT | None
    text: str = ""
    call_key: str | None = None
    problem: str = ""


async def propose(
    llm: LLM,
    prompt: str | Sequence[Message],
    schema: type[ReplyT],
    *,
    sampling: Sampling,
    stage: str,
) -> Proposal[ReplyT]:
    """Ask for a reply under a schema. Raises the EngineError family, but for ReplyInvalid."""
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    try:
        reply = await llm.complete(messages, schema, sampling=sampling, stage=stage)
    except ReplyInvalid as error:
        return Proposal(stage, None, problem=error.message)
    return Proposal(stage, reply.parsed, reply.text, reply.call_key)
