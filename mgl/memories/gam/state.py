"""The state of a GAM memory, and the edits it is made of.

Source: GAM §3.2 (Eq. 3–5) and §3.3 (Eq. 6–8). A turn is named by its number in the conversation.
The active event graph is ``buffer``: turns in their order, each linked to the one before (Eq. 6),
so its edges need not be kept. A topic holds its archived event graph the same way, which is its
cross-layer link too. ``apply`` is pure; a state is what the log's edits make of the empty one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from mgl.memories.log import APPEND, FORGET, Vocabulary
from mgl.memories.table import Table
from mgl.retrieval.cues import Marks
from mgl.types import Turn

Relation = Literal["support", "contradict", "coreference", "causal", "semantic", "unrelated"]

ASYMMETRIC: Final = frozenset({"support", "contradict", "causal"})

TriggerReason = Literal["session_end", "pause", "overflow", "flush"]


@dataclass(frozen=True, slots=True)
class Topic:
    """A node of the topic network (Eq. 7): ``summary`` and ``keywords`` are c_sum, the text of its
    ``turns`` is c_raw and the archived event graph. ``summary`` is "" where none could be had, or
    where a turn it was made from is gone. A ``frozen`` topic is neither changed nor linked anew."""

    id: str
    summary: str
    keywords: tuple[str, ...]
    turns: tuple[int, ...]
    marks: Mapping[int, Marks] = field(default_factory=dict)
    frozen: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """The next turn joins the buffer (Eq. 6)."""

    turn: int


@dataclass(frozen=True, slots=True)
class BoundaryCheck:
    """Boundaries were looked for in the buffer up to the turn ``through``: ``boundaries`` are the
    turns after which the topic changes."""

    trigger: TriggerReason
    through: int
    boundaries: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Consolidate:
    """The buffer's first turns become a topic (Eq. 7, 8) and leave the buffer."""

    topic: Topic


@dataclass(frozen=True, slots=True)
class MarkEvents:
    """What is known of a topic's events is found anew."""

    topic: str
    marks: Mapping[int, Marks]


Part = Literal["summary", "cues"]
"""What a call writes of a topic."""


@dataclass(frozen=True, slots=True)
class Miss:
    """A call for a part of a topic gave no reply that could be used."""

    topic: str
    part: Part


@dataclass(frozen=True, slots=True)
class Link:
    """An edge of the topic network; ``confidence`` (0 to 1) is its weight."""

    source: str
    target: str
    relation: Relation
    confidence: float


@dataclass(frozen=True, slots=True)
class Unlink:
    """The edges between two topics are removed."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A topic's summary and keywords are corrected."""

    topic: str
    summary: str
    keywords: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MergeTopics:
    """A topic takes in the topic ``gone``, and is then ``topic``.

    It keeps its id and gets the turns, marks and links of both; of several links to one topic, the
    most confident stays. With an empty summary it waits for another.
    """

    gone: str
    topic: Topic


@dataclass(frozen=True, slots=True)
class Freeze:
    """A topic is frozen, or released."""

    topic: str
    frozen: bool


@dataclass(frozen=True, slots=True)
class ForgetTurns:
    """Turns are deleted, or ``masked`` in part, with what was made of them.

    Deleted turns leave the buffer and their topics. A topic without turns goes with its edges; one
    that keeps some, or has a masked turn, loses summary and keywords. ``stale`` are further topics
    that lost theirs, for a word that only the turns had.
    """

    turns: tuple[int, ...]
    stale: tuple[str, ...] = ()
    masked: tuple[int, ...] = ()


Edit = (
    Append
    | BoundaryCheck
    | Consolidate
    | MarkEvents
    | Miss
    | Link
    | Unlink
    | Rewrite
    | MergeTopics
    | Freeze
    | ForgetTurns
)


@dataclass(frozen=True, slots=True)
class GamState:
    """``turns`` have been taken in; ``checked`` is the last turn that a check has seen, or -1.

    ``edges`` has each link under both of its topics. ``stale`` topics wait for a summary: none
    could be had, or it was lost with a turn. ``missed`` are the calls in vain for parts that are
    still missing, each as often as it was made.
    """

    turns: int = 0
    buffer: tuple[int, ...] = ()
    topics: Table[str, Topic] = field(default_factory=Table)
    edges: Table[str, tuple[Link, ...]] = field(default_factory=Table)
    checked: int = -1
    forgotten: frozenset[int] = frozenset()
    made: int = 0
    stale: frozenset[str] = frozenset()
    missed: tuple[Miss, ...] = ()

    @property
    def next_topic(self) -> str:
        """The id of the topic that is made next; ids are never used twice."""
        return f"t{self.made + 1}"

    @property
    def waiting(self) -> list[str]:
        """The topics that are to be given a summary, in order: those that wait for one, were not
        asked about in vain, and are not frozen."""
        missed = {each.topic for each in self.missed if each.part == "summary"}
        names = sorted(self.stale - missed, key=topic_number)
        return [name for name in names if not self.topics[name].frozen]

    @property
    def links(self) -> tuple[Link, ...]:
        """All links, in the order in which their sources were made."""
        return tuple(
            link for name in self.topics for link in self.edges.get(name, ()) if link.source == name
        )

    def neighbours(self, names: Collection[str]) -> list[str]:
        """The topics that an edge leads to from one of some topics (Eq. 9), by the highest weight.

        An edge of an asymmetric relation (E.1) leads from its source to its target alone.
        """
        weights: dict[str, float] = {}
        for name in names:
            for link in self.edges.get(name, ()):
                end = link.target if link.source == name else link.source
                if link.source == name or link.relation not in ASYMMETRIC:
                    weights[end] = max(weights.get(end, 0.0), link.confidence)
        found = weights.keys() - set(names)
        return sorted(found, key=lambda end: (-weights[end], topic_number(end)))


EMPTY: Final = GamState()


def apply(state: GamState, edit: Edit) -> GamState:
    """The state after an edit. ValueError for one that does not fit the state."""
    match edit:
        case Append(turn):
            if turn != state.turns:
                raise ValueError(f"turn {turn} comes after {state.turns} turns")
            buffer = state.buffer if turn in state.forgotten else (*state.buffer, turn)
            return replace(state, turns=turn + 1, buffer=buffer)
        case BoundaryCheck(_, through, _):
            return replace(state, checked=max(state.checked, through))
        case Consolidate(topic):
            count = len(topic.turns)
            if topic.turns != state.buffer[:count] or topic.id != state.next_topic:
                raise ValueError(f"{topic.id} is not made of the buffer's first turns")
            topics = state.topics.put(topic.id, topic)
            state = replace(state, buffer=state.buffer[count:], topics=topics, made=state.made + 1)
            return state if topic.summary else replace(state, stale=state.stale | {topic.id})
        case MarkEvents(name, marks):
            return _drop_misses(_with_topic(state, name, marks=marks), "cues", {name})
        case Miss(name):
            _with_topic(state, name)
            return replace(state, missed=(*state.missed, edit))
        case Link(source, target):
            if source not in state.topics or target not in state.topics or source == target:
                raise ValueError(f"no link can join {source} and {target}")
            edges = state.edges
            for end in (source, target):
                edges = edges.put(end, (*edges.get(end, ()), edit))
            return replace(state, edges=edges)
        case Unlink(source, target):
            edges, ends = state.edges, {source, target}
            for end in ends:
                kept = (link for link in edges.get(end, ()) if {link.source, link.target} != ends)
                edges = edges.put(end, tuple(kept))
            return replace(state, edges=edges)
        case Rewrite(name, summary, keywords):
            state = _with_topic(state, name, summary=summary, keywords=keywords)
            if not summary:
                return replace(state, stale=state.stale | {name})
            return _drop_misses(replace(state, stale=state.stale - {name}), "summary", {name})
        case MergeTopics():
            return _merge(state, edit)
        case Freeze(name, frozen):
            return _with_topic(state, name, frozen=frozen)
        case ForgetTurns(turns, stale, masked):
            state = _drop_turns(_drop_words(state, {*turns, *masked}), frozenset(turns))
            state = _drop_misses(state, "summary", stale)
            return replace(state, stale=state.stale.union(stale).intersection(state.topics))


def find_turns(state: GamState, edit: Edit) -> tuple[int, ...]:
    """The turns that the words of an edit are made of; most edits have none."""
    match edit:
        case Consolidate(topic) | MergeTopics(topic=topic):
            return topic.turns
        case Rewrite(name) | MarkEvents(name):
            return state.topics[name].turns
    return ()


VOCABULARY: Final = Vocabulary[Edit, GamState](
    {
        APPEND: Append,
        "check": BoundaryCheck,
        "consolidate": Consolidate,
        "mark": MarkEvents,
        "miss": Miss,
        "link": Link,
        "unlink": Unlink,
        "rewrite": Rewrite,
        "merge": MergeTopics,
        "freeze": Freeze,
        FORGET: ForgetTurns,
    },
    apply,
    EMPTY,
    turns=find_turns,
)


def raw_text(topic: Topic, turns: Sequence[Turn]) -> str:
    """A topic's c_raw (Eq. 7): what was said, a line a turn."""
    return "\n".join(turns[number].line for number in topic.turns)


def topic_number(name: str) -> int:
    """The number in a topic's id, by which topics are in order."""
    return int(name[1:])


def _with_topic(state: GamState, name: str, **changes: object) -> GamState:
    if name not in state.topics:
        raise ValueError(f"there is no topic {name}")
    topic = replace(state.topics[name], **changes)  # type: ignore[arg-type]
    return replace(state, topics=state.topics.put(name, topic))


def _merge(state: GamState, edit: MergeTopics) -> GamState:
    gone, topic = edit.gone, edit.topic
    old = [state.topics[name] for name in {gone, topic.id} if name in state.topics]
    if len(old) < 2 or topic.turns != tuple(sorted(turn for each in old for turn in each.turns)):
        raise ValueError(f"{topic.id} is not made of itself and {gone}")
    topics = {name: each for name, each in state.topics.items() if name != gone}
    best: dict[frozenset[str], Link] = {}
    for link in state.links:
        source, target = (topic.id if end == gone else end for end in (link.source, link.target))
        ends = frozenset((source, target))
        if len(ends) == 2 and (ends not in best or best[ends].confidence < link.confidence):
            best[ends] = replace(link, source=source, target=target)
    edges: dict[str, tuple[Link, ...]] = {}
    for link in best.values():
        for end in (link.source, link.target):
            edges[end] = (*edges.get(end, ()), link)
    waits = frozenset[str]() if topic.summary else frozenset((topic.id,))
    state = replace(
        _drop_misses(state, "summary", {gone, topic.id}),
        topics=Table({**topics, topic.id: topic}),
        edges=Table(edges),
        stale=state.stale - {gone, topic.id} | waits,
    )
    missed = (
        replace(each, topic=topic.id) if each.topic == gone else each for each in state.missed
    )
    return replace(state, missed=tuple(missed))


def _drop_misses(state: GamState, part: Part, names: Collection[str]) -> GamState:
    """The state once a part of some topics is there, or is to be asked for as if it never was."""
    left = (each for each in state.missed if each.part != part or each.topic not in names)
    return replace(state, missed=tuple(left))


def _drop_turns(state: GamState, gone: frozenset[int]) -> GamState:
    if not gone:
        return state
    left = {
        name: replace(topic, turns=tuple(turn for turn in topic.turns if turn not in gone))
        for name, topic in state.topics.items()
        if not gone.issuperset(topic.turns)
    }
    edges = {
        name: tuple(link for link in links if link.source in left and link.target in left)
        for name, links in state.edges.items()
        if name in left
    }
    return replace(
        state,
        buffer=tuple(turn for turn in state.buffer if turn not in gone),
        topics=Table(left),
        edges=Table(edges),
        forgotten=state.forgotten | gone,
        stale=state.stale.intersection(left),
        missed=tuple(each for each in state.missed if each.topic in left),
    )


def _drop_words(state: GamState, turns: Collection[int]) -> GamState:
    """Remove what was made from some turns."""
    hit = [topic for topic in state.topics.values() if any(turn in turns for turn in topic.turns)]
    topics = state.topics
    for topic in hit:
        marks = {turn: known for turn, known in topic.marks.items() if turn not in turns}
        topics = topics.put(topic.id, replace(topic, marks=marks, summary="", keywords=()))
    names = {topic.id for topic in hit}
    return replace(_drop_misses(state, "summary", names), topics=topics, stale=state.stale | names)
