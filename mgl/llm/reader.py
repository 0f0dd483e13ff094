"""The careful reader: the system message under which small, plain questions are put.

Every method that asks about a piece of text in its own words asks it here, so that methods differ
by what they read alone. Prompt ours.
"""

from __future__ import annotations

from mgl.llm.base import Message
from mgl.prompt import Prompt

__all__ = ["SYSTEM", "reader_messages"]

SYSTEM = Prompt(
    "reading.system",
    source="ours",
    text="You are a careful reader. You answer only from the given text.",
)


def reader_messages(prompt: str) -> list[Message]:
    """Put a prompt under the careful reader's system message."""
    return [Message("system", SYSTEM.text), Message("user", prompt)]
