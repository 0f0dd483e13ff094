"""The edits of a Mnemis log, and what each does to the state.

Source: Mnemis §2.1-2.2; deletion is ours. A step of the log is one episode, one pass over the
hierarchy, or a deletion.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import reduce
from typing import Final, Literal

from mgl.memories.log import FORGET, Draft, Vocabulary
from mgl.memories.mnemis.state import (
    EMPTY,
    Category,
    Entity,
    Episode,
    Fact,
    Lookups,
    Mention,
    MnemisState,
    Node,
)
from mgl.memories.table import Table
from mgl.types import Span

FAILED: Final[Literal["failed"]] = "failed"
"""Stop reason when every reply for a hierarchy failed."""


@dataclass(frozen=True, slots=True)
class AddEpisode:
    """Take in an episode."""

    episode: Episode


@dataclass(frozen=True, slots=True)
class MarkEpisode:
    """Say that an episode was not read whole, and how often that failed; None once it was."""

    episode: int
    failures: int | None


@dataclass(frozen=True, slots=True)
class AddEntity:
    """Add an entity."""

    id: str
    name: str
    mention: Mention


@dataclass(frozen=True, slots=True)
class Repeat:
    """Add a mention to a known entity or fact.

    An entity may be mentioned under another name; a mention of a fact may say when it holds.
    """

    id: str
    mention: Mention
    name: str | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None


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
class MergeEntities:
    """Let an entity take in the entity ``gone``: names, mentions, facts and places in categories.

    Facts between the two go. It waits for a description, if one of the two did. Where a deletion
    has dropped one of them, the rest is done.
    """

    id: str
    gone: str


@dataclass(frozen=True, slots=True)
class Restore:
    """Put an entity or a fact back as a deletion leaves it."""

    node: Entity | Fact


@dataclass(frozen=True, slots=True)
class Forget:
    """Say what a deletion drops besides the rows that it emptied.

    ``turns`` went from the conversation, ``dropped`` are entities and facts that nothing supports
    any more; categories lose the children that went. ``stale`` are all that wait for a description;
    ``counts`` are those of the state, so that no id is given twice.
    """

    turns: tuple[int, ...]
    dropped: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)


Edit = (
    AddEpisode
    | MarkEpisode
    | AddEntity
    | Repeat
    | Describe
    | AddFact
    | Close
    | PutCategory
    | Assign
    | DropHierarchy
    | FinishHierarchy
    | MergeEntities
    | Restore
    | Forget
)


EditDraft = Draft[Edit, MnemisState]


def apply(state: MnemisState, edit: Edit) -> MnemisState:
    """Return the state after one edit; KeyError or ValueError for an edit that does not fit it."""
    match edit:
        case AddEpisode(episode=episode):
            number = episode.number
            _check(number >= state.counts.get("n", 0), f"episode {number} was there")
            return replace(
                state,
                episodes=state.episodes.put(number, episode),
                counts=state.counts.put("n", number + 1),
                lookups=state.lookups.add_episode(episode),
            )
        case MarkEpisode(episode=number, failures=failures):
            return replace(state, unread=state.unread.put(number, failures))
        case AddEntity(id=new, name=name, mention=mention):
            lookups = state.lookups.add_name(name, new)
            return replace(_add(state, Entity(new, (name,), (mention,))), lookups=lookups)
        case Repeat():
            return _repeat(state, edit)
        case Describe(id=known, summary=summary, tags=tags):
            state = replace(state, stale=state.stale - {known})
            return state.put(replace(state.node(known), summary=summary, tags=tags))
        case AddFact(id=new, mention=mention, valid_at=begin, invalid_at=end):
            _check(_is_ordered(begin, end), f"{new} ends before it begins")
            fact = Fact(new, edit.source, edit.target, edit.text, (mention,), begin, end)
            return replace(_add(state, fact), lookups=state.lookups.add_fact(fact))
        case Close(id=known, invalid_at=end):
            fact = state.facts[known]
            _check(_is_ordered(fact.valid_at, end), f"{known} would end before it begins")
            return state.put(replace(fact, invalid_at=end))
        case PutCategory(id=new, layer=layer, name=name, children=children):
            return _add(state, Category(new, layer, name, children))
        case Assign(category=known, child=child):
            category = state.categories[known]
            return state.put(replace(category, children=(*category.children, child)))
        case DropHierarchy():
            left = state.stale.difference(state.categories)
            return replace(state, categories=Table(), stale=left)
        case FinishHierarchy(entities=count, stopped=stopped):
            failures = state.failed_builds + 1 if stopped == FAILED else 0
            return replace(state, categorised=count, failed_builds=failures)
        case MergeEntities():
            return _merge(state, edit)
        case Restore(node=node):
            return state.put(node)
        case Forget():
            return _forget(state, edit)


def replay(edits: Iterable[Edit], state: MnemisState = EMPTY) -> MnemisState:
    """Return the state that edits lead to."""
    return reduce(apply, edits, state)


def _add(state: MnemisState, node: Entity | Fact | Category) -> MnemisState:
    """Add a node; its id is the next of its letter, or a later one where others were dropped."""
    letter, number = node.id[0], int(node.id[1:])
    _check(number > state.counts.get(letter, 0), f"{node.id} was given before")
    return replace(state.put(node), counts=state.counts.put(letter, number))


def _repeat(state: MnemisState, edit: Repeat) -> MnemisState:
    if edit.id in state.facts:
        fact = state.facts[edit.id]
        begin, end = edit.valid_at or fact.valid_at, edit.invalid_at or fact.invalid_at
        _check(_is_ordered(begin, end), f"{edit.id} would end before it begins")
        mentions = _add_mention(fact.mentions, edit.mention)
        return state.put(replace(fact, mentions=mentions, valid_at=begin, invalid_at=end))
    entity = state.entities[edit.id]
    entity = replace(entity, mentions=_add_mention(entity.mentions, edit.mention))
    if edit.name is None or edit.name in entity.names:
        return state.put(entity)
    state = replace(state, lookups=state.lookups.add_name(edit.name, edit.id))
    return state.put(replace(entity, names=(*entity.names, edit.name)))


def _merge(state: MnemisState, edit: MergeEntities) -> MnemisState:
    def move(identity: str) -> str:
        return edit.id if identity == edit.gone else identity

    entities = {name: each for name, each in state.entities.items() if name != edit.gone}
    known, gone = entities.get(edit.id), state.entities.get(edit.gone)
    if known and gone:
        names = tuple(dict.fromkeys((*known.names, *gone.names)))
        mentions = reduce(_add_mention, gone.mentions, known.mentions)
        entities[edit.id] = replace(known, names=names, mentions=mentions)
    facts = {
        name: replace(fact, source=move(fact.source), target=move(fact.target))
        for name, fact in state.facts.items()
        if fact.ends != {edit.id, edit.gone}
    }
    categories = {
        name: replace(each, children=tuple(dict.fromkeys(map(move, each.children))))
        for name, each in state.categories.items()
    }
    before = {name: move(into) for name, into in state.merged.items()}
    return replace(
        state,
        entities=Table(entities),
        facts=Table(facts),
        categories=Table(categories),
        stale=frozenset(map(move, state.stale)),
        categorised=state.categorised and state.categorised - 1,
        merged=Table({**before, edit.gone: edit.id}),
        lookups=Lookups.of(state.episodes, entities, facts),
    )


def _forget(state: MnemisState, edit: Forget) -> MnemisState:
    gone = set(edit.dropped)
    entities = {name: each for name, each in state.entities.items() if name not in gone}
    nodes: dict[str, Node] = dict(entities)
    for category in sorted(state.categories.values(), key=lambda each: each.layer):
        if children := tuple(child for child in category.children if child not in gone):
            first = (nodes[child].name for child in children if child in nodes)
            name = category.name or next(first, "")
            nodes[category.id] = replace(category, name=name, children=children)
        else:
            gone.add(category.id)
    left = {name: nodes[name] for name in state.categories if name in nodes}
    facts = {name: each for name, each in state.facts.items() if name not in gone}
    return replace(
        state,
        entities=Table(entities),
        facts=Table(facts),
        categories=Table({n: each for n, each in left.items() if isinstance(each, Category)}),
        counts=Table(dict(edit.counts)),
        stale=frozenset(edit.stale) - gone,
        categorised=None,
        lookups=Lookups.of(state.episodes, entities, facts),
    )


def _is_ordered(begin: datetime | None, end: datetime | None) -> bool:
    return not (begin and end) or begin.replace(tzinfo=None) <= end.replace(tzinfo=None)


def _add_mention(mentions: tuple[Mention, ...], mention: Mention) -> tuple[Mention, ...]:
    """Add a mention in the order of the source; an episode may be read late."""
    place = _find_place(mentions, mention)
    if place == len(mentions):
        return mentions + (mention,)  # noqa: RUF005  (much faster with thousands)
    if mentions[place] == mention:
        return mentions
    return (*mentions[:place], mention, *mentions[place:])


def has_mention(mentions: tuple[Mention, ...], mention: Mention) -> bool:
    """Whether mentions, which are in the order of the source, have one already."""
    place = _find_place(mentions, mention)
    return place < len(mentions) and mentions[place] == mention


def _find_place(mentions: tuple[Mention, ...], mention: Mention) -> int:
    """Return where a mention is, or is to be put."""
    if not mentions or _order(mentions[-1]) < _order(mention):
        return len(mentions)
    return bisect_left(mentions, _order(mention), key=_order)


def _order(mention: Mention) -> tuple[int, int, int]:
    return mention.episode, mention.span.start, mention.span.end


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


def find_turns(state: MnemisState, edit: Edit) -> tuple[int, ...] | None:
    """Find the turns that an edit is made of; None where those of its span are.

    A description is made of all episodes that mention the entity, or an entity below the category:
    it was made with the description before. A category's name is made of none.
    """
    match edit:
        case AddEpisode(episode=episode):
            return episode.turns
        case AddEntity() | AddFact() | Repeat() | Close():
            return None
        case Describe(id=known):
            return turns_below(state, known)
        case Restore(node=node):
            return turns_of(state, node)
    return ()


def turns_below(state: MnemisState, *ids: str) -> tuple[int, ...]:
    """The turns of all episodes that mention an entity, or one below a category."""
    found: set[int] = set()
    for identity in ids:
        if identity in state.entities:
            found.update(turns_of(state, state.entities[identity]))
        else:
            found.update(turns_below(state, *state.categories[identity].children))
    return tuple(sorted(found))


def turns_of(state: MnemisState, *nodes: Entity | Fact) -> tuple[int, ...]:
    """The turns of all episodes that mention some nodes."""
    numbers = dict.fromkeys(number for node in nodes for number in node.episodes)
    return tuple(turn for number in numbers for turn in state.episodes[number].turns)


VOCABULARY: Final = Vocabulary[Edit, MnemisState](
    {
        "add_episode": AddEpisode,
        "mark_episode": MarkEpisode,
        "add_entity": AddEntity,
        "repeat": Repeat,
        "describe": Describe,
        "add_fact": AddFact,
        "close": Close,
        "put_category": PutCategory,
        "assign": Assign,
        "drop_hierarchy": DropHierarchy,
        "hierarchy": FinishHierarchy,
        "merge": MergeEntities,
        "restore": Restore,
        FORGET: Forget,
    },
    apply,
    EMPTY,
    span=_span,
    turns=find_turns,
)
