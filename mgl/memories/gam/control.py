"""What a user may change: correct a topic, freeze it, unlink or merge two, choose what to forget.

Source: GAM's ethics statement asks for control over what is kept. Functions look at the state and
give the edit that was meant, or say with an InputError what is missing. A frozen topic is left
alone until it is released; only its links may be cut.
"""

from __future__ import annotations

from collections.abc import Sequence

from mgl.errors import Conflict, InputError, NotThere
from mgl.memories.deletion import Target, find_before, find_turn_numbers
from mgl.memories.gam.state import (
    Freeze,
    GamState,
    MergeTopics,
    Rewrite,
    Topic,
    Unlink,
    topic_number,
)
from mgl.types import Turn


def rewrite_topic(
    state: GamState, name: str, summary: str | None, keywords: Sequence[str] | None
) -> Rewrite:
    """Correct a topic; what is None stays as it is."""
    topic = _find_free(state, name)
    said = _tidy_summary(name, topic.summary if summary is None else summary)
    return Rewrite(name, said, _tidy_keywords(topic.keywords if keywords is None else keywords))


def merge_topics(
    state: GamState,
    name: str,
    other: str,
    summary: str | None = None,
    keywords: Sequence[str] | None = None,
) -> MergeTopics:
    """Let a topic take in another. Unless given, summary and keywords are those of both, in the
    order in which they began; where one of the two waits for a summary, so does what is made."""
    both = sorted((_find_free(state, name), _find_free(state, other)), key=lambda each: each.turns)
    if name == other:
        raise Conflict(f"{name} cannot take in itself", hint="name another topic")
    known = [] if summary is None and {name, other} & state.stale else both
    if summary is None:
        said = " ".join(each.summary for each in known if each.summary)
    else:
        said = _tidy_summary(name, summary)
    if keywords is None:
        keywords = list(dict.fromkeys(word for each in known for word in each.keywords))
    turns = tuple(sorted(turn for each in both for turn in each.turns))
    marks = {turn: mark for each in both for turn, mark in each.marks.items()}
    return MergeTopics(other, Topic(name, said, _tidy_keywords(keywords), turns, marks))


def freeze_topic(state: GamState, name: str, frozen: bool) -> Freeze | None:
    """Freeze a topic, or release it; None where nothing changes."""
    return None if _find(state, name).frozen is frozen else Freeze(name, frozen)


def unlink_topics(state: GamState, one: str, two: str) -> Unlink:
    """Cut all links between two topics."""
    ends = {_find(state, one).id, _find(state, two).id}
    if not any({link.source, link.target} == ends for link in state.edges.get(one, ())):
        raise NotThere(f"no link joins {one} and {two}", hint="`mgl show` lists the links")
    return Unlink(one, two)


def find_branch(state: GamState, name: str) -> set[str]:
    """A topic, and every later one that leads to it by links."""
    found, grown = set[str](), {_find(state, name).id}
    while grown:
        found |= grown
        grown = {
            link.source
            for end in grown
            for link in state.edges.get(end, ())
            if link.target == end and topic_number(link.source) > topic_number(name)
        } - found
    return found


def choose(
    state: GamState, turns: Sequence[Turn], target: Target
) -> tuple[frozenset[int], frozenset[str]]:
    """Choose the turns that go, by their numbers, and the frozen topics that are spared: those that
    are not named. InputError for those that are."""
    owners = {number: topic for topic in state.topics.values() for number in topic.turns}
    gone = set(find_turn_numbers(turns, target.turns, state.forgotten).values())
    for number in gone:
        if number in owners:
            _find_free(state, owners[number].id)
    for name in target.topics:
        gone.update(_find_free(state, name).turns)
    meant = find_before(turns, target.before)
    if target.branch_of is not None:
        _find_free(state, target.branch_of)
        for name in find_branch(state, target.branch_of):
            meant.update(state.topics[name].turns)
    kept = {number for number in meant if number in owners and owners[number].frozen}
    gone |= meant - kept - state.forgotten
    return frozenset(gone), frozenset(owners[number].id for number in kept)


def _tidy_summary(name: str, summary: str) -> str:
    if not summary.strip():
        raise InputError(f"the summary of {name} would be empty", hint="say what it is about")
    return summary.strip()


def _tidy_keywords(keywords: Sequence[str]) -> tuple[str, ...]:
    return tuple(keyword.strip() for keyword in keywords if keyword.strip())


def _find(state: GamState, name: str) -> Topic:
    if name not in state.topics:
        raise NotThere(f"there is no topic {name!r}", hint="`mgl show` lists the topics")
    return state.topics[name]


def _find_free(state: GamState, name: str) -> Topic:
    topic = _find(state, name)
    if topic.frozen:
        release = f"release it first: `mgl edit NAME {name} --unfreeze`"
        raise Conflict(f"the topic {name} is frozen", hint=release)
    return topic
