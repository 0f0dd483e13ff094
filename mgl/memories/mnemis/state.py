"""What Mnemis remembers: episodes, entities, facts, and the categories over the entities.

Source: Mnemis §2.1-2.2. Episodes, entities and facts (the paper's edges; that an entity is in an
episode is its episodic edge) are the base graph. Categories lie above the entities, layer by layer;
a child may have several parents. Ids are short and never reused, so that a model can be held to
those that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Final

from mgl.memories.graph.names import entity_key
from mgl.memories.table import Table
from mgl.types import Span

SPEAKER: Final = "Speaker"
"""The category of "user" and first persons (Appendix E)."""

SPEAKER_KEY: Final = entity_key(SPEAKER)


@lru_cache(maxsize=100_000)
def key_of(name: str) -> str:
    """Return ``entity_key``, cached: names come again and again."""
    return entity_key(name)


@dataclass(frozen=True, slots=True)
class Mention:
    """Where something is said: the number of an episode, and characters of the source."""

    episode: int
    span: Span


@dataclass(frozen=True, slots=True)
class Episode:
    """A turn of the conversation, numbered from 0 among the episodes.

    ``turns`` holds the number of the turn; ``valid_at`` is its time, if known.
    """

    number: int
    span: Span
    turns: tuple[int, ...] = ()
    valid_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of layer 0. Of its ``names`` the first is shown."""

    id: str
    names: tuple[str, ...]
    mentions: tuple[Mention, ...]
    summary: str = ""
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all its names."""
        return frozenset(key_of(name) for name in self.names)

    @property
    def episodes(self) -> tuple[int, ...]:
        """The numbers of the episodes that mention it, sorted (the paper's episode_idx)."""
        return tuple(sorted({mention.episode for mention in self.mentions}))


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that joins two entities; it holds from ``valid_at`` to ``invalid_at``, if known.

    Times without a zone are as the source has them. ``invalid_at`` is never before ``valid_at``.
    """

    id: str
    source: str
    target: str
    text: str
    mentions: tuple[Mention, ...]
    valid_at: datetime | None = None
    invalid_at: datetime | None = None

    @property
    def ends(self) -> frozenset[str]:
        """The two entities that it joins."""
        return frozenset((self.source, self.target))

    @property
    def episodes(self) -> tuple[int, ...]:
        """The numbers of the episodes that state it, sorted."""
        return tuple(sorted({mention.episode for mention in self.mentions}))


@dataclass(frozen=True, slots=True)
class Category:
    """A node of layer 1 or above; ``children`` are ids of the layer below."""

    id: str
    layer: int
    name: str
    children: tuple[str, ...]
    summary: str = ""
    tags: tuple[str, ...] = ()

    @property
    def is_promotion(self) -> bool:
        """Whether it only lifts one node into the next layer, under the same name."""
        return len(self.children) == 1


Node = Entity | Category


def summary_text(entity: Entity) -> str:
    """Return what is embedded of an entity for a search (§2.3); its name, where it has none."""
    return entity.summary or entity.name


def words_text(entity: Entity) -> str:
    """Return what full-text search finds an entity by (§2.3): its names and its summary."""
    return " ".join((*entity.names, entity.summary))


def node_text(node: Node) -> str:
    """Return a node as it is judged and shown: its name, its tags, its summary."""
    tags = f" ({', '.join(node.tags)})" if node.tags else ""
    return f"{node.name}{tags}: {node.summary}" if node.summary else f"{node.name}{tags}"


@dataclass(frozen=True, slots=True)
class Lookups:
    """What is read off the nodes of a state, kept so that an edit costs the same in a large one.

    ``entities`` are ids by the key of each name (several where one name stands for several),
    ``facts`` ids by the two entities that they join, ``episodes`` numbers by turn. No turn before
    ``next_turn`` waits for an episode.
    """

    entities: Table[str, tuple[str, ...]] = field(default_factory=Table)
    facts: Table[frozenset[str], tuple[str, ...]] = field(default_factory=Table)
    episodes: Table[int, int] = field(default_factory=Table)
    next_turn: int = 0

    @classmethod
    def of(
        cls,
        episodes: Mapping[int, Episode],
        entities: Mapping[str, Entity],
        facts: Mapping[str, Fact],
    ) -> Lookups:
        """Read all off the nodes, as after a deletion."""
        names, joined = dict[str, tuple[str, ...]](), dict[frozenset[str], tuple[str, ...]]()
        for entity in entities.values():
            for key in dict.fromkeys(map(key_of, entity.names)):
                names[key] = (*names.get(key, ()), entity.id)
        for fact in facts.values():
            joined[fact.ends] = (*joined.get(fact.ends, ()), fact.id)
        taken = {turn: each.number for each in episodes.values() for turn in each.turns}
        return cls(Table(names), Table(joined), Table(taken))

    def add_episode(self, episode: Episode) -> Lookups:
        table, next_turn = self.episodes, self.next_turn
        for turn in episode.turns:
            table, next_turn = table.put(turn, episode.number), max(next_turn, turn + 1)
        return replace(self, episodes=table, next_turn=next_turn)

    def add_name(self, name: str, entity: str) -> Lookups:
        key = key_of(name)
        known = self.entities.get(key, ())
        if entity in known:
            return self
        return replace(self, entities=self.entities.put(key, (*known, entity)))

    def add_fact(self, fact: Fact) -> Lookups:
        ids = (*self.facts.get(fact.ends, ()), fact.id)
        return replace(self, facts=self.facts.put(fact.ends, ids))


@dataclass(frozen=True)
class State:
    """All nodes by id or number, in the order in which they came.

    ``counts`` says how many ids of each letter were given: e entities, f facts, c categories; n is
    the next number of an episode. ``stale`` nodes lost their description to a deletion and wait for
    another. ``unread`` says for an episode how often its reading failed: 0 where it is yet to be
    read, None once it was. ``categorised`` is how many entities the hierarchy was last built or
    updated for, None after a deletion; ``failed_builds`` counts those since whose replies all
    failed. ``merged`` says of entities that were merged away into which.
    """

    episodes: Table[int, Episode] = field(default_factory=Table)
    entities: Table[str, Entity] = field(default_factory=Table)
    facts: Table[str, Fact] = field(default_factory=Table)
    categories: Table[str, Category] = field(default_factory=Table)
    counts: Table[str, int] = field(default_factory=Table)
    stale: frozenset[str] = frozenset()
    unread: Table[int, int | None] = field(default_factory=Table)
    categorised: int | None = 0
    failed_builds: int = 0
    merged: Table[str, str] = field(default_factory=Table)
    lookups: Lookups = field(default_factory=Lookups, compare=False, repr=False)

    def facts_between(self, ends: frozenset[str]) -> list[Fact]:
        """Return the facts that join two entities, in the order of the log."""
        return [self.facts[each] for each in self.lookups.facts.get(ends, ())]

    def period(self, fact: Fact) -> tuple[datetime | None, datetime | None]:
        """Return from when to when a fact holds; from when it was first stated, if not known.

        One that ended before it was stated has no known begin.
        """
        begin = fact.valid_at or self.episodes[fact.mentions[0].episode].valid_at
        end = fact.invalid_at
        if begin and end and end.replace(tzinfo=None) < begin.replace(tzinfo=None):
            begin = fact.valid_at
        return begin, end

    def find_unread(self, most: int) -> dict[int, int]:
        """Return the episodes whose reading failed ``most`` times or less, and how often."""
        unread = self.unread.items()
        return {n: f for n, f in unread if f is not None and f <= most and n in self.episodes}

    def next_id(self, letter: str) -> str:
        """Return an id that was never given, such as ``e12``."""
        return f"{letter}{self.counts.get(letter, 0) + 1}"

    def put(self, node: Entity | Fact | Category) -> State:
        """Return the state with a node, in place of one of its id."""
        match node:
            case Entity():
                return replace(self, entities=self.entities.put(node.id, node))
            case Fact():
                return replace(self, facts=self.facts.put(node.id, node))
        return replace(self, categories=self.categories.put(node.id, node))

    @property
    def top(self) -> int:
        """The highest layer; 0 without categories."""
        return max((category.layer for category in self.categories.values()), default=0)

    def layer(self, number: int) -> tuple[Node, ...]:
        """Return the nodes of a layer: of 0 the entities, of others the categories."""
        return self.categories_of(number) if number else tuple(self.entities.values())

    def categories_of(self, layer: int) -> tuple[Category, ...]:
        """Return the categories of a layer, promotions included."""
        return tuple(each for each in self.categories.values() if each.layer == layer)

    def node(self, identity: str) -> Node:
        """Return an entity or a category by its id; KeyError if there is none."""
        return self.entities[identity] if identity in self.entities else self.categories[identity]


EMPTY: Final = State()
