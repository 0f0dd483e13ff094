"""What a user may change in a memory: correct a topic, freeze it, part two, choose what to forget.

Source: GAM's ethics statement asks for control over what is kept. Functions look at the state and
give the edit that was meant, or say with an InputError what is not there. A frozen topic is left
alone until it is let go; only its links may be cut.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mgl.errors import InputError
from mgl.memories.deletion import is_before, numbered
from mgl.memories.gam.state import Freeze, Rewrite, State, Topic, Unlink
from mgl.types import Turn

__all__ = ["Forgotten", "branch", "chosen", "freezing", "rewriting", "unlinking"]

_LET_GO = "let it go first (freeze it with frozen=False)"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What is forgotten: ``turns`` (their ids) and the ``topics`` that go with them.

    ``shortened`` topics keep other turns, and get another summary. ``spared`` are frozen topics
    that were meant and are kept.
    """

    turns: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    shortened: tuple[str, ...] = ()
    spared: tuple[str, ...] = ()


def rewriting(state: State, name: str, summary: str, keywords: Sequence[str]) -> Rewrite:
    """A correction of a topic."""
    _free(state, name)
    if not summary.strip():
        raise InputError(f"the summary of {name} would be empty", hint="say what it is about")
    kept = tuple(keyword.strip() for keyword in keywords if keyword.strip())
    return Rewrite(name, summary.strip(), kept)


def freezing(state: State, name: str, frozen: bool) -> Freeze | None:
    """None where the topic is as it should be."""
    return None if _topic(state, name).frozen is frozen else Freeze(name, frozen)


def unlinking(state: State, one: str, two: str) -> Unlink:
    """The end of all links between two topics."""
    ends = {_topic(state, one).id, _topic(state, two).id}
    if not any({link.source, link.target} == ends for link in state.links):
        raise InputError(f"no link joins {one} and {two}", hint="`mgl show` lists topics and links")
    return Unlink(one, two)


def branch(state: State, name: str) -> set[str]:
    """A topic, and every later one that leads to it by links."""
    found, grown = set[str](), {_topic(state, name).id}
    while grown:
        found |= grown
        grown = {
            link.source
            for link in state.links
            if link.target in grown and _number(link.source) > _number(name)
        } - found
    return found


def chosen(
    state: State,
    turns: Sequence[Turn],
    *,
    ids: Collection[str],
    topics: Collection[str],
    branch_of: str | None,
    before: datetime | None,
) -> Forgotten:
    """What goes with turns, topics, a topic's branch, and all that was said before a time.

    Times are compared as clocks show them; a turn without one is before none.
    """
    if not (ids or topics or branch_of is not None or before is not None):
        raise InputError("nothing to forget is named", hint="name turns, topics, a branch or a day")
    owners = {number: topic for topic in state.topics.values() for number in topic.turns}
    gone = _named(state, turns, ids, owners)
    for name in topics:
        gone.update(_free(state, name).turns)
    spared: set[str] = set()
    if branch_of is not None:
        _free(state, branch_of)
        for name in branch(state, branch_of):
            if state.topics[name].frozen:
                spared.add(name)
            else:
                gone.update(state.topics[name].turns)
    for number, turn in enumerate(turns):
        if before is None or number in state.forgotten or not is_before(turn, before):
            continue
        owner = owners.get(number)
        if owner is not None and owner.frozen:
            spared.add(owner.id)
        else:
            gone.add(number)
    touched = {owners[number].id for number in gone if number in owners}
    whole = {name for name in touched if gone.issuperset(state.topics[name].turns)}
    return Forgotten(
        tuple(turns[number].id for number in sorted(gone)),
        tuple(sorted(whole, key=_number)),
        tuple(sorted(touched - whole, key=_number)),
        tuple(sorted(spared, key=_number)),
    )


def _named(
    state: State, turns: Sequence[Turn], ids: Collection[str], owners: Mapping[int, Topic]
) -> set[int]:
    numbers = numbered(turns, ids, state.forgotten)
    for identity, number in numbers.items():
        if number in owners and owners[number].frozen:
            raise InputError(
                f"turn {identity!r} belongs to the frozen topic {owners[number].id}", hint=_LET_GO
            )
    return set(numbers.values())


def _topic(state: State, name: str) -> Topic:
    if name not in state.topics:
        raise InputError(f"there is no topic {name!r}", hint="`mgl show` lists them")
    return state.topics[name]


def _free(state: State, name: str) -> Topic:
    topic = _topic(state, name)
    if topic.frozen:
        raise InputError(f"the topic {name} is frozen", hint=_LET_GO)
    return topic


def _number(name: str) -> int:
    return int(name[1:])
