"""The base graph and the hierarchy over it, and the function that edits them.

Source: Mnemis §2.1–2.2. Episodes, entities and facts (the paper's edges; that an entity is in an
episode is its episodic edge) make the base graph. Categories lie above the entities, layer by
layer; a child may have several parents. Ids are short and never used again, so that a model can be
held to those that there are.

``apply`` gives the state after one edit; ``replay`` of a log gives the same state again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from mgl.memories.mnemis.nodes import Category, Entity, Episode, Fact, Mention
from mgl.memories.mnemis.pruning import Forget, without

__all__ = [
    "EMPTY",
    "AddEntity",
    "AddEpisode",
    "AddFact",
    "Assign",
    "Close",
    "Describe",
    "DropHierarchy",
    "Edit",
    "Forget",
    "PutCategory",
    "Repeat",
    "State",
    "apply",
    "replay",
]


@dataclass(frozen=True, slots=True)
class AddEpisode:
    episode: Episode


@dataclass(frozen=True, slots=True)
class AddEntity:
    """A name that no entity has yet."""

    id: str
    name: str
    mention: Mention


@dataclass(frozen=True, slots=True)
class Repeat:
    """An entity or a fact that is there is said again; an entity perhaps by another name."""

    id: str
    mention: Mention
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """What an entity or a category is, in place of what was said of it."""

    id: str
    summary: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddFact:
    id: str
    source: str
    target: str
    text: str
    mention: Mention
    valid_at: datetime | None = None
    invalid_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """A fact holds no longer: it was contradicted, and is kept."""

    id: str
    invalid_at: datetime


@dataclass(frozen=True, slots=True)
class PutCategory:
    id: str
    layer: int
    name: str
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assign:
    """One more child of a category that is there."""

    category: str
    child: str


@dataclass(frozen=True, slots=True)
class DropHierarchy:
    """All categories go: the hierarchy is built anew."""


Edit = (
    AddEpisode
    | AddEntity
    | Repeat
    | Describe
    | AddFact
    | Close
    | PutCategory
    | Assign
    | DropHierarchy
    | Forget
)
NodeT = TypeVar("NodeT", bound=Any)


def _nothing() -> Mapping[Any, Any]:
    return MappingProxyType({})


@dataclass(frozen=True)
class State:
    """All by id or number, in the order in which they came. ``counts`` is how many ids of each
    letter were given: e entities, f facts, c categories, n numbers of episodes. ``stale`` nodes
    lost a description to a deletion, and wait for another."""

    episodes: Mapping[int, Episode] = field(default_factory=_nothing)
    entities: Mapping[str, Entity] = field(default_factory=_nothing)
    facts: Mapping[str, Fact] = field(default_factory=_nothing)
    categories: Mapping[str, Category] = field(default_factory=_nothing)
    counts: Mapping[str, int] = field(default_factory=_nothing)
    stale: frozenset[str] = frozenset()

    def next_id(self, letter: str) -> str:
        """An id that was never given, for instance ``e12``."""
        return f"{letter}{self.counts.get(letter, 0) + 1}"

    @property
    def top(self) -> int:
        """The highest layer; 0 where there are no categories."""
        return max((category.layer for category in self.categories.values()), default=0)

    def layer(self, number: int) -> tuple[Entity | Category, ...]:
        """The nodes of a layer: of 0 the entities, of others the categories."""
        own = (each for each in self.categories.values() if each.layer == number)
        return tuple(own) if number else tuple(self.entities.values())

    def node(self, identity: str) -> Entity | Category:
        """An entity or a category; KeyError where there is none of this id."""
        return self.entities[identity] if identity in self.entities else self.categories[identity]

    def facts_of(self, entity: str) -> tuple[Fact, ...]:
        return tuple(f for f in self.facts.values() if entity in (f.source, f.target))


EMPTY = State()


def apply(state: State, edit: Edit) -> State:
    """The state after one edit. ValueError for an edit that cannot be: such edits are rejected
    before they come here."""
    match edit:
        case AddEpisode(episode=episode):
            return _with_episode(state, episode)
        case AddEntity(id=new, name=name, mention=mention):
            _check(new == state.next_id("e"), f"{new} is not the next entity")
            _check(mention.episode in state.episodes, f"{new} is in no episode")
            entity = Entity(new, (name,), (mention,))
            return _counted(replace(state, entities=_with(state.entities, new, entity)), "e")
        case Repeat(id=known, mention=mention, name=name):
            _check(mention.episode in state.episodes, f"{known} is in no episode")
            if known in state.facts:
                fact = state.facts[known]
                fact = replace(fact, mentions=_joined(fact.mentions, mention))
                return replace(state, facts=_with(state.facts, known, fact))
            _check(known in state.entities, f"there is no {known}")
            entity = state.entities[known]
            names = entity.names if name in (None, *entity.names) else (*entity.names, str(name))
            entity = replace(entity, names=names, mentions=_joined(entity.mentions, mention))
            return replace(state, entities=_with(state.entities, known, entity))
        case Describe(id=known, summary=summary, tags=tags):
            state = replace(state, stale=state.stale - {known})
            if known in state.entities:
                entity = replace(state.entities[known], summary=summary, tags=tags)
                return replace(state, entities=_with(state.entities, known, entity))
            _check(known in state.categories, f"there is no {known}")
            category = replace(state.categories[known], summary=summary, tags=tags)
            return replace(state, categories=_with(state.categories, known, category))
        case AddFact():
            return _with_fact(state, edit)
        case Close(id=known, invalid_at=end):
            _check(known in state.facts, f"there is no {known}")
            fact = state.facts[known]
            _check(_in_order(fact.valid_at, end), f"{known} would end before it begins")
            return replace(state, facts=_with(state.facts, known, replace(fact, invalid_at=end)))
        case PutCategory():
            return _with_category(state, edit)
        case Assign(category=known, child=child):
            _check(known in state.categories, f"there is no {known}")
            category = state.categories[known]
            _check(_fits(state, category.layer, (child,)), f"{child} is not below {known}")
            _check(child not in category.children, f"{child} is in {known}")
            category = replace(category, children=(*category.children, child))
            return replace(state, categories=_with(state.categories, known, category))
        case DropHierarchy():
            left = state.stale - state.categories.keys()
            return replace(state, categories=_emptied(state.categories), stale=left)
        case Forget():
            return without(state, edit)


def replay(edits: Iterable[Edit], state: State = EMPTY) -> State:
    """The state that a log of edits stands for; one edit does not cost a copy of the whole."""
    state = _each_mapping(state, _Growing)
    for edit in edits:
        state = apply(state, edit)
    return _each_mapping(state, MappingProxyType)


class _Growing(dict[Any, Any]):
    """A mapping of a state that nobody else sees: it is changed in place."""


def _each_mapping(state: State, kind: Callable[[Mapping[Any, Any]], Mapping[Any, Any]]) -> State:
    own: dict[str, Any] = {each.name: getattr(state, each.name) for each in fields(state)}
    changed: dict[str, Any] = {k: kind(v) for k, v in own.items() if isinstance(v, Mapping)}
    return replace(state, **changed)


def _with_episode(state: State, episode: Episode) -> State:
    _check(episode.number >= state.counts.get("n", 0), f"episode {episode.number} was there")
    state = replace(state, episodes=_with(state.episodes, episode.number, episode))
    return _counted(state, "n", episode.number + 1)


def _with_fact(state: State, edit: AddFact) -> State:
    _check(edit.id == state.next_id("f"), f"{edit.id} is not the next fact")
    _check(edit.mention.episode in state.episodes, f"{edit.id} is in no episode")
    ends = {edit.source, edit.target}
    _check(len(ends) == 2 and ends <= state.entities.keys(), f"{edit.id} joins no two entities")
    _check(_in_order(edit.valid_at, edit.invalid_at), f"{edit.id} ends before it begins")
    said = edit.text, (edit.mention,), edit.valid_at, edit.invalid_at
    fact = Fact(edit.id, edit.source, edit.target, *said)
    return _counted(replace(state, facts=_with(state.facts, edit.id, fact)), "f")


def _with_category(state: State, edit: PutCategory) -> State:
    _check(edit.id == state.next_id("c"), f"{edit.id} is not the next category")
    _check(edit.layer > 0 and bool(edit.children), f"{edit.id} has no children")
    _check(len(set(edit.children)) == len(edit.children), f"{edit.id} has a child twice")
    _check(_fits(state, edit.layer, edit.children), f"{edit.id} has children of another layer")
    category = Category(edit.id, edit.layer, edit.name, edit.children)
    return _counted(replace(state, categories=_with(state.categories, edit.id, category)), "c")


def _fits(state: State, layer: int, children: Iterable[str]) -> bool:
    if layer == 1:
        return all(child in state.entities for child in children)
    known = state.categories
    return all(child in known and known[child].layer == layer - 1 for child in children)


def _in_order(begin: datetime | None, end: datetime | None) -> bool:
    return not (begin and end) or begin.replace(tzinfo=None) <= end.replace(tzinfo=None)


def _with(known: Mapping[Any, NodeT], key: Any, value: NodeT) -> Mapping[Any, NodeT]:
    if isinstance(known, _Growing):
        known[key] = value
        return known
    return MappingProxyType({**known, key: value})


def _emptied(known: Mapping[Any, NodeT]) -> Mapping[Any, NodeT]:
    return _Growing() if isinstance(known, _Growing) else MappingProxyType({})


def _joined(mentions: tuple[Mention, ...], mention: Mention) -> tuple[Mention, ...]:
    return mentions if mention in mentions else (*mentions, mention)


def _counted(state: State, letter: str, to: int = 0) -> State:
    count = to or state.counts.get(letter, 0) + 1
    return replace(state, counts=MappingProxyType({**state.counts, letter: count}))


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
