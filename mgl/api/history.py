"""Find which messages of a client's history are new to the memory of its conversation.

A client of the OpenAI API sends the conversation with every request: all of it or its last
messages, ending with the one to reply to. The history is aligned with the stored turns:

1. The stored tail equals what is sent, and its last message has no reply: a failed request is
   sent again.
2. The stored tail equals everything before the last message: the last message is new.
3. The last message is stored after everything before it: its reply is made again.
4. Otherwise the client edited its history, or its history begins elsewhere. User messages that are
   not stored are new, and so is everything after the last message that is.

If a client no longer shows a turn, that turn is replaced. A regenerated reply replaces the old one.
An edited message replaces the old one and all that followed it. Each turn records which turn it
followed in the client's history, so turns from other chats of the same name, and from programs that
append, stay. In doubt nothing is replaced. A message sent alone is new; it replaces the first one
only for a client that is known to send whole chats.

Messages match only if they are equal. A deleted turn is compared by the keyed hash of its text. It
is not stored again, unless the user says it anew, at the end. If a conversation repeats itself word
for word, rule 2 wins over rule 3: a reply may be stored twice, but no message is lost. A client
that says it is retrying, by the header X-Stainless-Retry-Count, which OpenAI's own clients send,
lost the reply: it gets the stored one, and replaces nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final, Literal

from mgl.llm.base import Message

MOST_COMPARED: Final = 2000
"""The last stored turns, with which an edited history is compared."""

BEGINS: Final = -1
"""What the first message of a whole chat follows."""

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Said:
    """What is compared of a message: who said it, and its text or the hash of its text.

    ``follows`` is the place of the stored turn before it in a client's history, where known, or
    ``BEGINS``.
    """

    role: Role
    what: str | bytes
    is_deleted: bool = False
    follows: int | None = None

    @property
    def key(self) -> tuple[Role, str | bytes]:
        return self.role, self.what


_BEGINNING: Final = Said("assistant", b"")


@dataclass(frozen=True, slots=True)
class News:
    """``fresh`` are the places of the messages to take in.

    The last of them is to be replied to, or else the stored turn at the place ``asked``. The first
    follows the stored turn at the place ``after``, where that is known. The stored turns at the
    places ``replaced`` are to go.
    """

    fresh: tuple[int, ...]
    asked: int | None = None
    after: int | None = None
    replaced: frozenset[int] = frozenset()


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


def find_news(
    stored: Sequence[Said],
    sent: Sequence[Said],
    *,
    is_retry: bool = False,
    is_whole: bool = False,
) -> News:
    """Find what is new; ``sent`` ends with the message of the user that is to be replied to.

    ``is_retry``: the client says that it sent the same before. ``is_whole``: it sends all of a chat
    that has the conversation's name alone.
    """
    if not is_whole:
        known = [replace(each, follows=None) if each.follows == BEGINS else each for each in stored]
        return _find_news(known, sent, is_retry=is_retry)
    known = [
        each if each.follows is None else replace(each, follows=each.follows + 1) for each in stored
    ]
    found = _find_news([_BEGINNING, *known], [_BEGINNING, *sent], is_retry=is_retry)
    return News(
        tuple(place - 1 for place in found.fresh),
        None if found.asked is None else found.asked - 1,
        None if found.after is None else found.after - 1,
        frozenset(place - 1 for place in found.replaced),
    )


def _find_news(stored: Sequence[Said], sent: Sequence[Said], *, is_retry: bool) -> News:
    before, last = sent[:-1], len(sent) - 1
    if stored and not stored[-1].is_deleted and _is_tail(stored, sent):
        return News((), len(stored) - 1)
    follows = _is_tail(stored, before)
    if follows and before and not is_retry:
        return News((last,), after=len(stored) - 1)
    if (asked := _find_asked(stored, sent, is_retry=is_retry)) is not None:
        return News((), asked, replaced=_find_replies(stored, before, asked))
    parted, gone = _find_replaced(stored, before)
    unknown = range(parted, last) if gone else _find_unknown(stored, before)
    fresh = (*(() if follows else unknown), last)
    found = _find_places(stored, sent[: fresh[0]])
    after = found[0] if len(found) == 1 else None
    return News(fresh, after=after, replaced=gone)


def _find_replies(stored: Sequence[Said], before: Sequence[Said], asked: int) -> frozenset[int]:
    """Find what a regenerated reply to a turn replaces: all that followed the turn, and the
    messages that the turn itself replaced."""
    gone = _find_branch(stored, asked)
    if before and _find_places(stored, before) == [origin := stored[asked].follows]:
        assert origin is not None
        gone |= _find_branch(stored, origin, but=asked, of="user")
    return gone


def _find_replaced(stored: Sequence[Said], before: Sequence[Said]) -> tuple[int, frozenset[int]]:
    """Find what a new message after ``before`` replaces.

    Returns how many messages of ``before`` are stored, and the places of what followed them.
    """
    for shown in range(len(before), 0, -1):
        if found := _find_places(stored, before[:shown]):
            break
    else:
        return 0, frozenset()
    rest = before[shown:]
    told = [each for each in rest if each.role == "user"] or rest  # replies are often alike
    known = {each.key for each in stored[-MOST_COMPARED:]}
    if len(found) > 1 or not known.isdisjoint(each.key for each in told):
        return shown, frozenset()  # in doubt, or of a client that leaves out the middle
    if not rest or rest[0].role == "user":
        return shown, _find_branch(stored, found[0], of="user")
    gone = _find_branch(stored, found[0], of="assistant")
    is_last = len(rest) == 1 and all(stored[place].role == "assistant" for place in gone)
    return shown, gone if is_last else frozenset()


def _find_places(stored: Sequence[Said], shown: Sequence[Said]) -> list[int]:
    """Find the stored turns at which a client's history ends with exactly these messages.

    Returns their places, the last first. A deleted turn counts only if no other turn matches.
    """
    found = []
    for place in reversed(range(max(0, len(stored) - MOST_COMPARED), len(stored))):
        at: int | None = place
        for each in reversed(shown):
            if at is None or stored[at].key != each.key:
                break
            at = stored[at].follows
        else:
            found.append(place)
    kept = [place for place in found if not stored[place].is_deleted]
    return (kept or found) if shown else []


def _find_branch(
    stored: Sequence[Said], root: int, *, but: int | None = None, of: Role | None = None
) -> frozenset[int]:
    """Find the turns that followed ``root``, of any role or ``of`` one, and what followed those.

    Returns their places, without ``but`` and what followed it, and without deleted turns.
    """
    branch = {
        place
        for place, each in enumerate(stored)
        if each.follows == root and place != but and of in (None, each.role)
    }
    for place in range(root + 1, len(stored)):
        if stored[place].follows in branch:
            branch.add(place)
    return frozenset(place for place in branch if not stored[place].is_deleted)


def _find_asked(stored: Sequence[Said], sent: Sequence[Said], *, is_retry: bool) -> int | None:
    """The last turn of the user that says what is sent last, if it was sent after the rest before.

    A message that is sent alone may be said anew: only the first of a conversation, one without a
    reply, or one that is sent once more is that turn.
    """
    before, last = sent[:-1], sent[-1]
    first = max(0, len(stored) - MOST_COMPARED)
    same = (n for n in reversed(range(first, len(stored))) if stored[n].key == last.key)
    if before and (origins := _find_places(stored, before)):
        unknown = () if before[0] == _BEGINNING else (None,)
        same = (n for n in same if stored[n].follows in (*unknown, *origins))
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
