"""What of the history that a client sends is new to the memory of the conversation.

A client of the OpenAI API sends the conversation with every request: all of it, or its last
messages, and the one that is to be replied to at the end. What is stored is aligned with that:

1. All of it is stored, and the last message has no reply: a request that failed is sent again.
2. The messages before the last are the stored tail: the last one is new, whatever it says.
3. All of it is stored, and what follows is the reply: the reply was lost, and is given again.
4. Otherwise the client's history was edited, or begins elsewhere: what follows its last message
   that is stored, in order, is new.

A deleted turn is as long as it was and says nothing, so it is taken for any message of its speaker:
what was forgotten is not taken in again. Where a conversation repeats itself word for word, 2 goes
before 3: a reply may be remembered twice, and nothing that was said is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from mgl.llm.base import Message

MOST_COMPARED: Final = 2000
"""The last stored turns, with which an edited history is compared."""

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Spoken:
    """A message without the space around it; ``text`` is None where it was deleted."""

    role: Role
    text: str | None

    def fits(self, said: Spoken) -> bool:
        """Whether a message that is sent may be this one, which is stored."""
        return self.role == said.role and self.text in (None, said.text)


@dataclass(frozen=True, slots=True)
class News:
    """``fresh`` are the messages to take in, the last of which is to be replied to.

    Where there are none, that is the stored turn with the number ``asked``.
    """

    fresh: tuple[Spoken, ...]
    asked: int | None = None


def list_spoken(messages: Sequence[Message]) -> list[Spoken]:
    """What user and assistant said; calls of tools and their results are not part of it."""
    return [
        Spoken("user" if message.role == "user" else "assistant", text)
        for message in messages
        if message.role in ("user", "assistant") and not message.tool_calls
        if (text := message.content.strip())
    ]


def find_news(stored: Sequence[Spoken], sent: Sequence[Spoken]) -> News:
    """Find what is new; ``sent`` ends with the message of the user that is to be replied to."""
    before, last = sent[:-1], sent[-1]
    if stored and stored[-1].role == "user" and _is_tail(stored, sent):
        return News((), len(stored) - 1)
    if _is_tail(stored, before):
        return News((last,))
    replied = bool(stored) and stored[-1].role == "assistant"
    if replied and len(sent) > 1 and _is_tail(stored, sent, without=1):
        return News((), len(stored) - 2)
    compared = stored[-MOST_COMPARED:]
    blocks = SequenceMatcher(None, compared, before, autojunk=False).get_matching_blocks()
    known = max((block.b + block.size for block in blocks if block.size), default=0)
    return News((*before[known:], last))


def _is_tail(stored: Sequence[Spoken], sent: Sequence[Spoken], *, without: int = 0) -> bool:
    """Whether the last stored messages, but for some, are those that are sent; true of none."""
    end = len(stored) - without
    first = end - len(sent)
    return first >= 0 and all(
        one.fits(other) for one, other in zip(stored[first:end], sent, strict=True)
    )
