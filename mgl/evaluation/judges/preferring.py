"""Which of two answers a judge prefers, asked in both orders.

    >>> asked = await both_ways(llm, item, "It rained.", "It rained and blew.")  # doctest: +SKIP
    >>> asked.forth, asked.back                                                  # doctest: +SKIP
    ('second', 'first')

Source: Edge et al., From Local to Global (2024), compares answers in pairs; prompt ours. A judge
that names the same place in both orders has looked at the place (``reliability.position_bias``).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mgl.benchmarks.base import Item
from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.evaluation.judges.judge_prompts import BETTER
from mgl.evaluation.judges.judging import JUDGING, Reason
from mgl.llm.base import LLM, Message, Sampling

__all__ = ["BothWays", "Place", "better", "both_ways"]

Place = Literal["first", "second", "neither"]


@dataclass(frozen=True, slots=True)
class BothWays:
    """What was preferred with one answer first (``forth``) and with the other first (``back``);
    None where a reply could not be read."""

    forth: Place | None
    back: Place | None


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")

    reason: Reason
    better: Place


async def better(
    llm: LLM, item: Item, first: str, second: str, *, sampling: Sampling = JUDGING
) -> Place | None:
    """The place of the better answer; None where the reply cannot be read, or does not fit.

    Raises the rest of the EngineError family.
    """
    text = BETTER.render(
        passage=item.passage, question=item.question.text, first=first, second=second
    )
    try:
        reply = await llm.complete(
            [Message("user", text)], _Reply, sampling=sampling, stage="judge"
        )
    except (ReplyInvalid, ContextOverflow):
        return None
    assert reply.parsed is not None
    return reply.parsed.better


async def both_ways(
    llm: LLM, item: Item, one: str, other: str, *, sampling: Sampling = JUDGING
) -> BothWays:
    """The same two answers in both orders."""
    forth, back = await asyncio.gather(
        better(llm, item, one, other, sampling=sampling),
        better(llm, item, other, one, sampling=sampling),
    )
    return BothWays(forth, back)
