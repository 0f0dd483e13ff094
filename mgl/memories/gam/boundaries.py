"""When the buffer is consolidated, and where it is cut.

Source: GAM §3.3, Algorithm 2, prompt E.3, Fig. 3 (other partitions), Appendix C.3 (noise). The
model is asked for boundaries only at a trigger: the end of a session, a pause, a buffer over its
capacity, or the end of the stream. It sees the buffer and a few turns before it, numbered from 0;
only boundaries within the buffer are among its choices. What follows the last boundary stays in the
buffer. A full buffer without a boundary becomes one topic, and so does what is left at the end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise

from pydantic import create_model

from mgl.llm.base import LLM
from mgl.llm.calls import note_shown_only
from mgl.llm.constraints import index_set
from mgl.llm.prompting import fit_texts
from mgl.memories.gam.config import GamConfig
from mgl.memories.gam.prompts import BOUNDARIES, number_lines
from mgl.memories.gam.state import GamState, TriggerReason
from mgl.memories.propose import StrictReply, propose
from mgl.retrieval.shifts import ShiftDetector
from mgl.text.times import find_gap
from mgl.types import Turn

BOUNDARY_TOKENS = 200
CONTEXT_TURNS = 4  # earlier turns that are shown (E.3); the number is ours
PAUSE = timedelta(minutes=60)  # §3.3 names pauses, and no length
SHIFT = 2  # turns either way (C.3)
_SHIFTS = [turns for turns in range(-SHIFT, SHIFT + 1) if turns]

CountTokens = Callable[[Sequence[int]], Awaitable[int]]
"""Counts the tokens of some turns together."""


class Boundaries(StrictReply):
    """E.3: indices of utterances after which the topic changes."""

    boundaries: list[int]


def boundaries_schema(first: int, count: int) -> type[Boundaries]:
    """Boundaries among ``count`` indices from ``first``."""
    indices = index_set(count, first=first)
    return create_model("boundaries", __base__=Boundaries, boundaries=(indices, ...))


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why the buffer is consolidated now, and which of its turns."""

    reason: TriggerReason
    turns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """``parts`` become topics, in order; ``boundaries`` are turns after which the topic changes.

    ``problem`` says why the model's reply could not be used, where it could not.
    """

    parts: tuple[tuple[int, ...], ...]
    boundaries: tuple[int, ...] = ()
    call_key: str | None = None
    problem: str = ""


async def next_trigger(
    state: GamState,
    turns: Sequence[Turn],
    config: GamConfig,
    count_tokens: CountTokens,
    *,
    quiet: tuple[int, ...] = (),
) -> Trigger | None:
    """The first trigger that a turn of the buffer pulls and that was not acted on yet.

    ``quiet`` is a buffer that pulled none: where this one begins with it, what follows is looked
    at.
    """
    buffer, partition = state.buffer, config.cut_by
    if partition == "turns":
        size = 1 if config.without == "ssm" else config.window_turns
        return Trigger("overflow", buffer[:size]) if len(buffer) >= size else None
    capacity = config.window_tokens if partition == "window" else config.buffer_tokens
    is_full = False
    if partition != "session":
        # A token is a byte at least, so most appends need no tokenizer.
        size = sum(len(turns[number].line.encode(errors="replace")) for number in buffer)
        is_full = size > capacity and await count_tokens(buffer) > capacity
    looked_at = 0 if is_full or buffer[: len(quiet)] != quiet else len(quiet)
    for place, number in enumerate(buffer[looked_at:], looked_at):
        if number <= state.checked:
            continue
        before = buffer[place - 1] if place else -1
        if partition != "window" and before > state.checked:
            reason = _break_between(turns[before], turns[number], config)
            if reason is not None:
                return Trigger(reason, buffer[:place])
        if is_full and await count_tokens(buffer[: place + 1]) > capacity:
            return Trigger("overflow", buffer[: place + 1])
    return None


async def find_cut(
    llm: LLM,
    trigger: Trigger,
    turns: Sequence[Turn],
    config: GamConfig,
    *,
    before: Sequence[int],
    detector: ShiftDetector | None = None,
) -> Cut:
    """Where the trigger's turns are cut; ``before`` are earlier turns, shown as context.

    With a ``detector`` the model is not asked for boundaries.
    """
    if config.cut_by != "semantic":
        is_last_of_next = config.cut_by == "window" and trigger.reason == "overflow"
        keeps_last = is_last_of_next and len(trigger.turns) > 1
        return Cut((trigger.turns[:-1] if keeps_last else trigger.turns,))
    if detector is None:
        found = await _find_boundaries(llm, trigger.turns, turns, config, before)
    else:
        found = Cut((), await _detect(detector, trigger.turns, turns, before))
    if config.noise:
        chance = random.Random(f"{config.seed} {trigger.turns[0]} {trigger.turns[-1]}")
        noisy = perturb(found.boundaries, trigger.turns, config.noise, chance)
        found = replace(found, boundaries=noisy)
    ends = [0, *(trigger.turns.index(turn) + 1 for turn in found.boundaries), len(trigger.turns)]
    parts = tuple(trigger.turns[start:end] for start, end in pairwise(ends))
    takes_all = trigger.reason == "flush" or (trigger.reason == "overflow" and len(parts) == 1)
    return replace(found, parts=parts if takes_all else parts[:-1])


def perturb(
    boundaries: Sequence[int], seen: Sequence[int], noise: float, chance: random.Random
) -> tuple[int, ...]:
    """Boundaries with segmentation errors (Appendix C.3).

    Each is, with the probability ``noise``, missed or moved by up to two turns; with the same
    probability one is put in at random for each that there was.
    """
    places = seen[:-1]
    kept: set[int] = set()
    for boundary in boundaries:
        if chance.random() >= noise:
            kept.add(boundary)
        elif chance.random() < 0.5:
            moved = places.index(boundary) + chance.choice(_SHIFTS)
            kept.add(places[min(max(moved, 0), len(places) - 1)])
    extra = sum(chance.random() < noise for _ in boundaries)
    free = [place for place in places if place not in kept]
    kept.update(chance.sample(free, min(extra, len(free))))
    return tuple(sorted(kept))


def _break_between(before: Turn, turn: Turn, config: GamConfig) -> TriggerReason | None:
    if before.session != turn.session:
        return "session_end"
    if config.cut_by == "session" or before.time is None or turn.time is None:
        return None
    return "pause" if find_gap(before.time, turn.time) > PAUSE else None


async def _detect(
    detector: ShiftDetector, seen: Sequence[int], turns: Sequence[Turn], before: Sequence[int]
) -> tuple[int, ...]:
    """The turns after which the topic changes; the detector read no names of speakers."""
    shown = [*before, *seen]
    texts = [turns[number].text for number in shown]
    begins = await asyncio.to_thread(detector.find_shifts, texts)
    return tuple(shown[place - 1] for place in begins if place > len(before))


async def _find_boundaries(
    llm: LLM, seen: Sequence[int], turns: Sequence[Turn], config: GamConfig, before: Sequence[int]
) -> Cut:
    if len(seen) < 2:
        return Cut(())
    shown = [*before, *seen]
    lines = await fit_texts(llm, [turns[number].line for number in shown], reserve=BOUNDARY_TOKENS)
    with note_shown_only(shown):
        proposal = await propose(
            llm,
            BOUNDARIES.render(dialogue_text=number_lines(lines)),
            boundaries_schema(len(before), len(seen) - 1),
            sampling=config.make_sampling(BOUNDARY_TOKENS),
            stage="boundaries",
        )
    if proposal.reply is None:
        return Cut((), problem=proposal.problem)
    found = tuple(shown[index] for index in proposal.reply.boundaries)
    return Cut((), found, proposal.call_key)
