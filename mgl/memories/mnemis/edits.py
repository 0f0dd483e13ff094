"""The edits of a Mnemis log, and what each does to the state.

Source: Mnemis §2.1-2.2; deletion is ours. A step of the log is one episode, one pass over the
hierarchy, or a deletion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from itertools import takewhile
from typing import Final, TypeVar

from mgl.memories.log import FORGET, Vocabulary
from mgl.memories.mnemis.state import (
    EMPTY,
    Category,
    Entity,
    Episode,
    Fact,
    Mention,
    State,
)
from mgl.memories.table import Table
from mgl.types import Span

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class AddEpisode:
    """Take in an episode."""

    episode: Episode


@dataclass(frozen=True, slots=True)
class AddEntity:
    """Add an entity under a name that no other has."""

    id: str
    name: str
    mention: Mention


@dataclass(frozen=True, slots=True)
class Repeat:
    """Add a mention to a known entity or fact; to an entity perhaps under another name."""

    id: str
    mention: Mention
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Describe:
    """Replace the summary and the tags of an entity or a category."""

    id: str
    summary: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddFact:
    """Add a fact between two entities."""

    id: str
    source: str
    target: str
    text: str
    mention: Mention
    valid_at: datetime | None = None
    invalid_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Close:
    """End a fact that was contradicted; it is kept."""

    id: str
    invalid_at: datetime


@dataclass(frozen=True, slots=True)
class PutCategory:
    """Add a category over nodes of the layer below."""

    id: str
    layer: int
    name: str
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Assign:
    """Add a child to a category."""

    category: str
    child: str


@dataclass(frozen=True, slots=True)
class DropHierarchy:
    """Drop all categories, before they are built anew."""


@dataclass(frozen=True, slots=True)
class FinishHierarchy:
    """Say for how many entities the hierarchy was built or updated, and why that ended."""

    stopped: str
    entities: int
    layers: int


@dataclass(frozen=True, slots=True)
class Forget:
    """Say what a deletion drops besides the rows that it emptied.

    ``turns`` went from the conversation, ``dropped`` are nodes that nothing supports any more,
    ``stale`` all that wait for a description; ``counts`` are those of the state, so that no id is
    given twice.
    """

    turns: tuple[int, ...]
    dropped: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Restore:
    """Put a node back as a deletion leaves it."""

    node: Entity | Fact | Category


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
    | FinishHierarchy
    | Forget
    | Restore
)


def apply(state: State, edit: Edit) -> State:
    """Return the state after one edit; ValueError for an edit that does not fit it."""
    match edit:
        case AddEpisode(episode=episode):
            number = episode.number
            _check(number >= state.counts.get("n", 0), f"episode {number} was there")
            return replace(
                state,
                episodes=state.episodes.put(number, episode),
                counts=state.counts.put("n", number + 1),
                kept=state.lookups.add_episode(episode),
            )
        case AddEntity(id=new, name=name, mention=mention):
            _check_new(state, new)
            _check(mention.episode in state.episodes, f"{new} is in no episode")
            return replace(
                state,
                entities=state.entities.put(new, Entity(new, (name,), (mention,))),
                counts=_count(state, new),
                kept=state.lookups.add_name(name, new),
            )
        case Repeat():
            return _repeat(state, edit)
        case Describe():
            return _describe(state, edit)
        case AddFact():
            return _add_fact(state, edit)
        case Close(id=known, invalid_at=end):
            _check(known in state.facts, f"there is no {known}")
            fact = state.facts[known]
            _check(_is_ordered(fact.valid_at, end), f"{known} would end before it begins")
            return replace(state, facts=state.facts.put(known, replace(fact, invalid_at=end)))
        case PutCategory():
            return _put_category(state, edit)
        case Assign(category=known, child=child):
            _check(known in state.categories, f"there is no {known}")
            category = state.categories[known]
            _check(_are_below(state, category.layer, (child,)), f"{child} is not below {known}")
            _check(child not in category.children, f"{child} is in {known}")
            category = replace(category, children=(*category.children, child))
            return replace(state, categories=state.categories.put(known, category))
        case DropHierarchy():
            left = state.stale - state.categories.keys()
            return replace(state, categories=Table(), stale=left)
        case FinishHierarchy(entities=count):
            return replace(state, categorised=count)
        case Forget():
            return _forget(state, edit)
        case Restore(node=Entity() as node):
            return replace(state, entities=state.entities.put(node.id, node), kept=None)
        case Restore(node=Fact() as fact):
            return replace(state, facts=state.facts.put(fact.id, fact), kept=None)
        case Restore(node=category):
            return replace(state, categories=state.categories.put(category.id, category))


def replay(edits: Iterable[Edit], state: State = EMPTY) -> State:
    """Return the state that edits lead to."""
    return reduce(apply, edits, state)


def _count(state: State, new: str) -> Table[str, int]:
    return state.counts.put(new[0], int(new[1:]))


def _check_new(state: State, new: str) -> None:
    """An id is the next of its letter, or a later one where a deletion dropped others."""
    _check(int(new[1:]) > state.counts.get(new[0], 0), f"{new} was given before")


def _forget(state: State, edit: Forget) -> State:
    dropped = frozenset(edit.dropped)

    def drop(known: Table[str, ItemT]) -> Table[str, ItemT]:
        if dropped.isdisjoint(known):
            return known
        return Table({name: node for name, node in known.items() if name not in dropped})

    return replace(
        state,
        entities=drop(state.entities),
        facts=drop(state.facts),
        categories=drop(state.categories),
        counts=Table(edit.counts),
        stale=frozenset(edit.stale),
        categorised=None,
        kept=None,
    )


def _repeat(state: State, edit: Repeat) -> State:
    known = edit.id
    _check(edit.mention.episode in state.episodes, f"{known} is in no episode")
    if known in state.facts:
        fact = state.facts[known]
        fact = replace(fact, mentions=_add_mention(fact.mentions, edit.mention))
        return replace(state, facts=state.facts.put(known, fact))
    _check(known in state.entities, f"there is no {known}")
    entity = state.entities[known]
    entity = replace(entity, mentions=_add_mention(entity.mentions, edit.mention))
    kept = state.kept
    if edit.name is not None and edit.name not in entity.names:
        entity = replace(entity, names=(*entity.names, edit.name))
        kept = state.lookups.add_name(edit.name, known)
    return replace(state, entities=state.entities.put(known, entity), kept=kept)


def _describe(state: State, edit: Describe) -> State:
    known = edit.id
    state = replace(state, stale=state.stale - {known})
    if known in state.entities:
        entity = replace(state.entities[known], summary=edit.summary, tags=edit.tags)
        return replace(state, entities=state.entities.put(known, entity))
    _check(known in state.categories, f"there is no {known}")
    category = replace(state.categories[known], summary=edit.summary, tags=edit.tags)
    return replace(state, categories=state.categories.put(known, category))


def _add_fact(state: State, edit: AddFact) -> State:
    _check_new(state, edit.id)
    _check(edit.mention.episode in state.episodes, f"{edit.id} is in no episode")
    ends = {edit.source, edit.target}
    _check(
        len(ends) == 2 and all(end in state.entities for end in ends), "it joins no two entities"
    )
    _check(_is_ordered(edit.valid_at, edit.invalid_at), f"{edit.id} ends before it begins")
    said = edit.text, (edit.mention,), edit.valid_at, edit.invalid_at
    fact = Fact(edit.id, edit.source, edit.target, *said)
    return replace(
        state,
        facts=state.facts.put(edit.id, fact),
        counts=_count(state, edit.id),
        kept=state.lookups.add_fact(fact),
    )


def _put_category(state: State, edit: PutCategory) -> State:
    _check_new(state, edit.id)
    _check(edit.layer > 0 and bool(edit.children), f"{edit.id} has no children")
    _check(len(set(edit.children)) == len(edit.children), f"{edit.id} has a child twice")
    _check(_are_below(state, edit.layer, edit.children), f"{edit.id} has children of another layer")
    category = Category(edit.id, edit.layer, edit.name, edit.children)
    categories = state.categories.put(edit.id, category)
    return replace(state, categories=categories, counts=_count(state, edit.id))


def _are_below(state: State, layer: int, children: Iterable[str]) -> bool:
    if layer == 1:
        return all(child in state.entities for child in children)
    known = state.categories
    return all(child in known and known[child].layer == layer - 1 for child in children)


def _is_ordered(begin: datetime | None, end: datetime | None) -> bool:
    return not (begin and end) or begin.replace(tzinfo=None) <= end.replace(tzinfo=None)


def _add_mention(mentions: tuple[Mention, ...], mention: Mention) -> tuple[Mention, ...]:
    return mentions if has_mention(mentions, mention) else (*mentions, mention)


def has_mention(mentions: tuple[Mention, ...], mention: Mention) -> bool:
    """Whether mentions, which are in the order of the episodes, have one already."""
    recent = takewhile(lambda each: each.episode >= mention.episode, reversed(mentions))
    return mention in recent


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _span(edit: Edit) -> Span | None:
    """Return the place in the source that an edit stands on."""
    match edit:
        case AddEpisode(episode=episode):
            return episode.span
        case AddEntity(mention=mention) | AddFact(mention=mention) | Repeat(mention=mention):
            return mention.span
    return None


def find_turns(state: State, edit: Edit) -> tuple[int, ...] | None:
    """Find the turns that an edit is made of; None where those of its span are.

    A description is made of all episodes that mention the entity, or an entity below the category:
    it was made with the description before. A category's name alone is made of none.
    """
    match edit:
        case AddEpisode(episode=episode):
            return episode.turns
        case AddEntity() | AddFact() | Repeat() | Close():
            return None
        case Describe(id=known):
            return turns_below(state, known)
        case Restore(node=Category() as category):
            return turns_below(state, *category.children) if category.summary else ()
        case Restore(node=Entity() | Fact() as node):
            return turns_of(state, node)
    return ()


def turns_below(state: State, *ids: str) -> tuple[int, ...]:
    """The turns of all episodes that mention an entity, or one below a category."""
    found: set[int] = set()
    for identity in ids:
        if identity in state.entities:
            found.update(turns_of(state, state.entities[identity]))
        else:
            found.update(turns_below(state, *state.categories[identity].children))
    return tuple(sorted(found))


def turns_of(state: State, *nodes: Entity | Fact) -> tuple[int, ...]:
    """The turns of all episodes that mention some nodes."""
    numbers = dict.fromkeys(number for node in nodes for number in node.episodes)
    return tuple(turn for number in numbers for turn in state.episodes[number].turns)


VOCABULARY: Final = Vocabulary[Edit, State](
    {
        "add_episode": AddEpisode,
        "add_entity": AddEntity,
        "repeat": Repeat,
        "describe": Describe,
        "add_fact": AddFact,
        "close": Close,
        "put_category": PutCategory,
        "assign": Assign,
        "drop_hierarchy": DropHierarchy,
        "hierarchy": FinishHierarchy,
        FORGET: Forget,
        "restore": Restore,
    },
    apply,
    EMPTY,
    span=_span,
    turns=find_turns,
)
