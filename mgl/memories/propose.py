"""One constrained call: a validated reply, or a failure that the memory records and lives with.

    proposal = await propose(llm, prompt, Summary, sampling=sampling, stage="summary")
    if proposal.reply is None:
        draft.fail("summary", proposal.problem)

A reply that stays invalid after every retry does not stop a memory: what it was to say is missing,
a row of the log says so, and all else continues. So does a call that timed out or did not fit,
where the memory can do without; every other failure (a lost server) is raised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from mgl.errors import ContextOverflow, EngineError, EngineTimeout, ReplyInvalid
from mgl.llm.base import LLM, Message, Sampling

ReplyT = TypeVar("ReplyT", bound=BaseModel)

_REASONS: Final[dict[type[EngineError], str]] = {
    ReplyInvalid: "reply_invalid",
    EngineTimeout: "timeout",
    ContextOverflow: "context_overflow",
}
AGAIN_SEED: Final = 1000
"""Between the seeds of a call and of its next try, beyond those of the client's own repairs."""
AGAIN_TEMPERATURE: Final = 0.7
"""Of the second call where the first is one that failed before."""
FAILURES: Final = tuple(_REASONS)
"""What ends one call and nothing else, where a memory can do without its reply."""


class StrictReply(BaseModel):
    """The base of a reply that has the fields of its schema and no others."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Proposal(Generic[ReplyT]):
    """What one call gave: ``reply``, or a ``problem`` where no reply could be used, and the
    ``reason`` that its row has.

    ``text`` is the reply as the model wrote it, for a conversation that continues; ``input_tokens``
    are what the call read.
    """

    stage: str
    reply: ReplyT | None
    text: str = ""
    call_key: str | None = None
    problem: str = ""
    reason: str = "reply_invalid"
    input_tokens: int = 0


def vary(sampling: Sampling, time: int, *, temperature: float = 0.3) -> Sampling:
    """How a call that failed is sampled for the ``time``-th time after the first: with a seed of
    its own, and warm, since greedy decoding repeats itself."""
    if not time:
        return sampling
    warm, seed = max(sampling.temperature, temperature), sampling.seed + time * AGAIN_SEED
    return replace(sampling, temperature=warm, seed=seed)


async def propose(
    llm: LLM,
    prompt: str | Sequence[Message],
    schema: type[ReplyT],
    *,
    sampling: Sampling,
    stage: str,
    forgive: tuple[type[EngineError], ...] = (ReplyInvalid,),
    failures: int = 0,
) -> Proposal[ReplyT]:
    """Ask for a reply under a schema. Raises the EngineError family, but for what ``forgive``
    names, some of ``FAILURES``.

    ``failures`` counts earlier runs in which this call failed. The log replays a failure as it
    was; the call is then made once more, warm and with another seed.
    """
    if failures:
        made = await propose(llm, prompt, schema, sampling=sampling, stage=stage, forgive=forgive)
        if made.reply is not None:
            return made
        sampling = vary(sampling, failures, temperature=AGAIN_TEMPERATURE)
    messages = [Message("user", prompt)] if isinstance(prompt, str) else prompt
    try:
        reply = await llm.complete(messages, schema, sampling=sampling, stage=stage)
    except forgive as error:
        reason = next(name for kind, name in _REASONS.items() if isinstance(error, kind))
        return Proposal(stage, None, problem=error.message, reason=reason)
    read = reply.usage.input_tokens
    return Proposal(stage, reply.parsed, reply.text, reply.call_key, input_tokens=read)


async def recover(call: Awaitable[Proposal[ReplyT]], stage: str) -> Proposal[ReplyT]:
    """Await a proposal of several calls; an unusable reply to any becomes its ``problem``. Raises
    as ``propose``."""
    try:
        return await call
    except ReplyInvalid as error:
        return Proposal(stage, None, problem=error.message)
