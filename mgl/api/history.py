"""Find which messages of a client's history are new to the memory of its conversation.

A client of the OpenAI API sends the conversation with every request: all of it or its last
messages, ending with the one to reply to. The history is aligned with the stored turns:

1. The stored tail equals what is sent, and its last message has no reply: a failed request is
   sent again.
2. The stored tail equals everything before the last message: the last message is new.
3. The last message is stored after everything before it: its reply was lost, or is to be made
   again.
4. Otherwise the client edited its history, or its history begins elsewhere. User messages that are
   not stored are new, and so is everything after the last message that is.

Messages match only if they are equal. A deleted turn is compared by the keyed hash of its text. It
is not stored again, unless the user says it anew, at the end. If a conversation repeats itself word
for word, rule 2 wins over rule 3: a reply may be stored twice, but no message is lost. A client
that sent one message and sends it again lost the reply. So did one that says it is retrying, by the
header X-Stainless-Retry-Count, which OpenAI's own clients send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final, Literal

from mgl.llm.base import Message

MOST_COMPARED: Final = 2000
"""The last stored turns, with which an edited history is compared."""

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Said:
    """What is compared of a message: who said it, and its text or the hash of its text."""

    role: Role
    what: str | bytes
    is_deleted: bool = False

    @property
    def key(self) -> tuple[Role, str | bytes]:
        return self.role, self.what


@dataclass(frozen=True, slots=True)
class News:
    """``fresh`` are the places of the messages to take in.

    The last of them is to be replied to, or else the stored turn with the number ``asked``.
    """

    fresh: tuple[int, ...]
    asked: int | None = None


def list_spoken(messages: Sequence[Message]) -> list[tuple[int, Role, str]]:
    """What user and assistant said, without the space around it, each with the message's place.

    Calls of tools and their results are no part of it.
    """
    return [
        (place, "user" if message.role == "user" else "assistant", text)
        for place, message in enumerate(messages)
        if message.role in ("user", "assistant") and not message.tool_calls
        if (text := message.content.strip())
    ]


def find_news(stored: Sequence[Said], sent: Sequence[Said], *, is_retry: bool = False) -> News:
    """Find what is new; ``sent`` ends with the message of the user that is to be replied to.

    ``is_retry``: the client says that it sent the same before.
    """
    before, last = sent[:-1], len(sent) - 1
    if stored and not stored[-1].is_deleted and _is_tail(stored, sent):
        return News((), len(stored) - 1)
    follows = _is_tail(stored, before)
    if follows and before and not is_retry:
        return News((last,))
    if (asked := _find_asked(stored, sent, is_retry=is_retry)) is not None:
        return News((), asked)
    return News((*(() if follows else _find_unknown(stored, before)), last))


def _find_asked(stored: Sequence[Said], sent: Sequence[Said], *, is_retry: bool) -> int | None:
    """The last turn of the user that says what is sent last, if it was sent after the rest before.

    A message that is sent alone may be said anew: only the first of a conversation, one without a
    reply, or one that is sent once more is that turn.
    """
    before, last = sent[:-1], sent[-1]
    first = max(0, len(stored) - MOST_COMPARED)
    same = (n for n in reversed(range(first, len(stored))) if stored[n].key == last.key)
    asked = next(same, None)
    if asked is None or stored[asked].is_deleted:
        return None
    if not before:
        later = len(stored) - 1 - asked
        return asked if is_retry or not later or (asked == 0 and later == 1) else None
    is_known = not _find_unknown(stored[:asked], before)
    return asked if is_known and _find_unknown(stored[asked + 1 :], before) else None


def _find_unknown(stored: Sequence[Said], sent: Sequence[Said]) -> list[int]:
    """The places of messages that are not stored.

    An assistant's message before one that is stored was altered by the client: its own is stored.
    """
    compared = [each.key for each in stored[-MOST_COMPARED:]]
    keys = [each.key for each in sent]
    blocks = SequenceMatcher(None, compared, keys, autojunk=False).get_matching_blocks()
    aligned = {block.b + step for block in blocks for step in range(block.size)}
    known_to = max(aligned, default=-1)
    left = Counter(compared)
    left.subtract(keys[place] for place in aligned)
    unknown = []
    for place, each in enumerate(sent):
        if place in aligned or (each.role == "assistant" and place < known_to):
            continue
        if left[each.key] > 0:  # stored elsewhere, since the history was edited
            left[each.key] -= 1
        else:
            unknown.append(place)
    return unknown


def _is_tail(stored: Sequence[Said], sent: Sequence[Said]) -> bool:
    """Whether the last stored messages are those that are sent; true of none."""
    first = len(stored) - len(sent)
    return first >= 0 and all(
        one.key == other.key for one, other in zip(stored[first:], sent, strict=True)
    )
