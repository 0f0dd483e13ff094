"""Breadth and depth of a question by a judge, in several passes.

    labels = await label_item(llm, item, "Text", reading, passes=2, temperature=0.7)
    labels.stable, labels.kept

Source: MindGraph §4.1 ("labels … produced by an LLM judge …; we keep only items whose labels are
stable across two judging passes"). How its passes differ is not printed: here each has seeds of its
own at a temperature, also where a reply that cannot be read is drawn anew. One that still cannot be
read leaves a label out, and such an item is not stable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mgl.benchmarks.base import Item
from mgl.errors import ContextOverflow, ReplyInvalid
from mgl.evaluation.judges.reliability import APART
from mgl.evaluation.sets.taxonomy import (
    BREADTH,
    DEPTH,
    KEPT_BREADTH,
    KEPT_DEPTH,
    LABEL,
    AxisReply,
    BreadthReply,
    DepthReply,
)
from mgl.llm.base import LLM, Message, Sampling
from mgl.prompt import Prompt

__all__ = ["LABEL_TOKENS", "AxisLabel", "ItemLabels", "frame_tokens", "label_item", "unread"]

LABEL_TOKENS: Final = 256
_AXES: Final[Mapping[str, tuple[Prompt, type[AxisReply]]]] = {
    "breadth": (BREADTH, BreadthReply),
    "depth": (DEPTH, DepthReply),
}


@dataclass(frozen=True, slots=True)
class AxisLabel:
    """One label of one pass; None where the reply could not be read, ``reason`` says why then."""

    label: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class ItemLabels:
    """The labels of an item, one a pass on each axis."""

    item: str
    breadth: tuple[AxisLabel, ...]
    depth: tuple[AxisLabel, ...]

    @property
    def breadth_stable(self) -> bool:
        return _same(self.breadth)

    @property
    def depth_stable(self) -> bool:
        return _same(self.depth)

    @property
    def stable(self) -> bool:
        """Whether every pass gave the same two labels."""
        return self.breadth_stable and self.depth_stable

    @property
    def kept(self) -> bool:
        """Whether the stable labels are those of long-context reasoning (§4.1)."""
        return (
            self.stable
            and self.breadth[0].label in KEPT_BREADTH
            and self.depth[0].label in KEPT_DEPTH
        )


async def label_item(
    llm: LLM, item: Item, kind: str, reading: str, *, passes: int, temperature: float
) -> ItemLabels:
    """The labels of one item from what is read of its document; ``kind`` says what that is."""

    async def one(axis: str, number: int) -> AxisLabel:
        schema = _AXES[axis][1]
        sampling = Sampling(temperature=temperature, max_tokens=LABEL_TOKENS, seed=APART * number)
        try:
            reply = await llm.complete(
                _messages(axis, item, kind, reading), schema, sampling=sampling, stage=axis
            )
        except (ReplyInvalid, ContextOverflow) as error:
            return AxisLabel(None, error.message)
        if reply.parsed is None:
            return AxisLabel(None, "the judge called a tool")
        return AxisLabel(reply.parsed.label, reply.parsed.reason)

    asked = [one(axis, number) for axis in _AXES for number in range(passes)]
    labels = await asyncio.gather(*asked)
    return ItemLabels(item.id, tuple(labels[:passes]), tuple(labels[passes:]))


def unread(item: Item, reason: str, *, passes: int) -> ItemLabels:
    """The labels of an item whose document could not be read."""
    labels = (AxisLabel(None, reason),) * passes
    return ItemLabels(item.id, labels, labels)


async def frame_tokens(llm: LLM, items: Sequence[Item]) -> int:
    """The most tokens that a prompt about these items has besides what is read, and its reply."""
    counted = [
        await llm.count_prompt_tokens(_messages(axis, item, "Text", ""), schema)
        for item in items
        for axis, (_, schema) in _AXES.items()
    ]
    return max(counted) + LABEL_TOKENS


def _messages(axis: str, item: Item, kind: str, reading: str) -> list[Message]:
    text = LABEL.render(
        kind=kind,
        reading=reading,
        axis=axis,
        scale=_AXES[axis][0].text,
        question=item.question.text,
        answer="\n".join(_answers(item)) or "(none is given)",
    )
    return [Message("user", text)]


def _answers(item: Item) -> Sequence[str]:
    """The gold answers; the choice that a letter stands for, where there are choices."""
    letters = {chr(ord("A") + place): text for place, text in enumerate(item.choices)}
    return [f"({gold}) {letters[gold]}" if gold in letters else gold for gold in item.golds]


def _same(labels: Sequence[AxisLabel]) -> bool:
    first = labels[0].label
    return first is not None and all(label.label == first for label in labels)
