"""How turns and topics are written into prompts."""

from __future__ import annotations

from collections.abc import Sequence

from mgl.memories.gam.state import Topic
from mgl.types import Turn

__all__ = ["likeness_text", "numbered", "raw_text"]


def numbered(lines: Sequence[str], *, first: int = 0) -> str:
    """Lines with their index in front, each on one line of its own."""
    return "\n".join(
        f"[{place}] {' '.join(line.split())}" for place, line in enumerate(lines, first)
    )


def raw_text(topic: Topic, turns: Sequence[Turn]) -> str:
    """A topic's c_raw (Eq. 7): what was said, a line a turn."""
    return "\n".join(turns[number].line for number in topic.turns)


def likeness_text(topic: Topic, turns: Sequence[Turn]) -> str:
    """What a topic is found by: its summary, or its raw text where it has none."""
    return topic.summary or raw_text(topic, turns)
