"""When the buffer is looked at, and where it is cut.

Source: GAM §3.3, Algorithm 2, prompt E.3, Fig. 3 (other partitions), Appendix C.3 (noise). The
discriminator is asked only at a trigger: a session's end, a pause, a buffer over its capacity, or
the end of the stream. It sees the buffer and a few turns before it, numbered from 0; boundaries
within what was consolidated already are not among its choices. What follows the last boundary
stays in the buffer. An overflow that finds none makes the whole buffer one topic, and so does the
end of the stream with what is left.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.llm.prompting import fit_texts
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.edits import boundaries_schema
from mgl.memories.gam.prompts import BOUNDARIES
from mgl.memories.gam.state import State, Trigger
from mgl.memories.gam.texts import numbered
from mgl.types import Turn

__all__ = ["Cut", "Look", "cut", "due", "perturbed"]

BOUNDARY_TOKENS = 200
SHIFT = 2  # turns either way (C.3)
_SHIFTS = [turns for turns in range(-SHIFT, SHIFT + 1) if turns]

CountTokens = Callable[[Sequence[int]], Awaitable[int]]
"""Tokens of some turns together."""


@dataclass(frozen=True, slots=True)
class Look:
    """An occasion to cut: the turns of the buffer that are looked at, and why now."""

    trigger: Trigger
    turns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """``parts`` become topics, in order; ``boundaries`` are turns after which the topic changes.

    ``failed`` says why the model's reply could not be used, where it could not.
    """

    parts: tuple[tuple[int, ...], ...]
    boundaries: tuple[int, ...] = ()
    call_key: str | None = None
    failed: str | None = None


async def due(
    state: State, turns: Sequence[Turn], config: GamConfig, count_tokens: CountTokens
) -> Look | None:
    """What the last turn gives occasion to and has not been done yet."""
    last, buffer = state.turns - 1, state.buffer
    if not buffer or buffer[-1] != last or state.checked >= last:
        return None
    partition = "turns" if config.without == "ssm" else config.partition
    if partition == "turns":
        size = 1 if config.without == "ssm" else config.window_turns
        return Look("overflow", buffer) if len(buffer) >= size else None
    if partition in ("semantic", "session") and len(buffer) > 1 and state.checked < buffer[-2]:
        ended = _ended(turns[buffer[-2]], turns[last], config)
        if ended is not None:
            return Look(ended, buffer[:-1])
    if partition == "session":
        return None
    capacity = config.window_tokens if partition == "window" else config.buffer_tokens
    if await _over(capacity, turns, buffer, count_tokens):
        return Look("overflow", buffer)
    return None


async def cut(
    llm: LLM, look: Look, turns: Sequence[Turn], config: GamConfig, *, before: Sequence[int]
) -> Cut:
    """Where the turns that are looked at are cut; ``before`` are turns shown as context."""
    if config.without == "ssm" or config.partition in ("session", "turns"):
        return Cut((look.turns,))
    if config.partition == "window":
        if look.trigger == "overflow" and len(look.turns) > 1:
            return Cut((look.turns[:-1],))
        return Cut((look.turns,))
    found = await _boundaries(llm, look.turns, turns, config, before)
    parts = _split(look.turns, found.boundaries)
    whole = look.trigger == "flush" or (look.trigger == "overflow" and len(parts) == 1)
    return replace(found, parts=tuple(parts if whole else parts[:-1]))


def perturbed(
    boundaries: Sequence[int], seen: Sequence[int], noise: float, chance: random.Random
) -> tuple[int, ...]:
    """Boundaries with segmentation errors (Appendix C.3).

    Each is, with the probability ``noise``, missed or moved by up to two turns; then ``noise`` ×
    as many as there were are put in at random.
    """
    places = seen[:-1]
    kept: set[int] = set()
    for boundary in boundaries:
        if chance.random() >= noise:
            kept.add(boundary)
        elif chance.random() < 0.5:
            moved = places.index(boundary) + chance.choice(_SHIFTS)
            kept.add(places[min(max(moved, 0), len(places) - 1)])
    extra = round(noise * len(boundaries))
    free = [place for place in places if place not in kept]
    kept.update(chance.sample(free, min(extra, len(free))))
    return tuple(sorted(kept))


def _ended(before: Turn, turn: Turn, config: GamConfig) -> Trigger | None:
    if before.session != turn.session:
        return "session_end"
    if before.time is None or turn.time is None:
        return None
    pause = timedelta(minutes=config.pause_minutes)
    return "pause" if _gap(before.time, turn.time) > pause else None


def _gap(before: datetime, time: datetime) -> timedelta:
    """The time between two times; as clocks show them where one of them has no zone."""
    if before.tzinfo is None or time.tzinfo is None:
        return time.replace(tzinfo=None) - before.replace(tzinfo=None)
    return time - before


async def _over(
    capacity: int, turns: Sequence[Turn], buffer: Sequence[int], count_tokens: CountTokens
) -> bool:
    """A token is a byte at least, so most appends need no tokenizer."""
    if sum(len(turns[number].line.encode(errors="replace")) for number in buffer) <= capacity:
        return False
    return await count_tokens(buffer) > capacity


async def _boundaries(
    llm: LLM,
    seen: Sequence[int],
    turns: Sequence[Turn],
    config: GamConfig,
    before: Sequence[int],
) -> Cut:
    if len(seen) < 2:
        return Cut(())
    context = list(before)[-config.context_turns :] if config.context_turns else []
    shown = [*context, *seen]
    lines = await fit_texts(llm, [turns[number].line for number in shown], reserve=BOUNDARY_TOKENS)
    schema = boundaries_schema(len(context), len(seen) - 1)
    sampling = config.sampling(BOUNDARY_TOKENS)
    prompt = BOUNDARIES.render(dialogue_text=numbered(lines))
    try:
        reply = await llm.complete(
            [Message("user", prompt)], schema, sampling=sampling, stage="boundaries"
        )
    except ReplyInvalid as error:
        return Cut((), failed=error.message)
    found = tuple(shown[index] for index in reply.parsed.boundaries)
    if config.noise:
        chance = random.Random(f"{config.seed} {seen[0]} {seen[-1]}")
        found = perturbed(found, seen, config.noise, chance)
    return Cut((), found, reply.call_key)


def _split(seen: tuple[int, ...], boundaries: Sequence[int]) -> list[tuple[int, ...]]:
    ends = [0, *(seen.index(boundary) + 1 for boundary in boundaries), len(seen)]
    return [seen[start:end] for start, end in pairwise(ends)]
