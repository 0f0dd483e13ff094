"""What is left of base graph and hierarchy when episodes are forgotten.

Ours: the paper leaves deletion to a rebuild. What stood on these episodes alone goes; a node that
others mention stays. In the hierarchy every node that is left still has a way to the top, no layer
above the first has more nodes than the one below it, and each category has enough children or is a
promotion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import TypeVar

from mgl.memories.graph.names import entity_key
from mgl.memories.mnemis.state import SPEAKER_KEY, Category, Entity, Fact, State, Table

__all__ = ["Forget", "without"]

NodeT = TypeVar("NodeT", Entity, Fact)


@dataclass(frozen=True, slots=True)
class Forget:
    """Episodes are deleted; turns of theirs that are left may be taken in again, in others.

    ``nameless`` are entities that would go on under no name that is left: they go, too. ``stale``
    are nodes of which a description went; ``least`` is how many children a category has.
    """

    episodes: tuple[int, ...]
    nameless: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    least: int = 2


def without(state: State, edit: Forget) -> State:
    """The state after a deletion."""
    gone = frozenset(edit.episodes)
    left = {n: episode for n, episode in state.episodes.items() if n not in gone}
    entities = _mentioned(state.entities, gone, edit.nameless)
    facts = {
        name: fact
        for name, fact in _mentioned(state.facts, gone).items()
        if fact.source in entities and fact.target in entities
    }
    ids = count(state.counts.get("c", 0) + 1)
    categories = _hierarchy(state, entities, edit.least, ids)
    stale = (state.stale | set(edit.stale)) & (entities.keys() | categories.keys())
    return replace(
        state,
        episodes=Table(left),
        entities=Table(entities),
        facts=Table(facts),
        categories=Table(categories),
        counts=state.counts.put("c", next(ids) - 1),
        stale=stale,
    )


def _mentioned(
    nodes: Mapping[str, NodeT], gone: Collection[int], besides: Collection[str] = ()
) -> dict[str, NodeT]:
    """The nodes that episodes which are left mention, with these mentions alone."""
    left: dict[str, NodeT] = {}
    for name, node in nodes.items():
        mentions = tuple(each for each in node.mentions if each.episode not in gone)
        if mentions and name not in besides:
            whole = len(mentions) == len(node.mentions)
            left[name] = node if whole else replace(node, mentions=mentions)
    return left


def _hierarchy(
    state: State, entities: Mapping[str, Entity], least: int, ids: Iterator[int]
) -> dict[str, Category]:
    """The categories over the entities that are left, layer by layer."""
    made: dict[str, Category] = {}
    below: Mapping[str, Entity | Category] = entities
    stand_ins: dict[str, tuple[str, ...]] = {}
    for layer in range(1, state.top + 1):
        own = [each for each in state.categories.values() if each.layer == layer]
        kept, stand_ins = _layer(own, below, stand_ins, least, ids)
        if layer > 1 and len(kept) > len(below):
            _irredundant(kept)
        made |= kept
        below = kept
    return made


def _layer(
    categories: Sequence[Category],
    below: Mapping[str, Entity | Category],
    stand_ins: Mapping[str, tuple[str, ...]],
    least: int,
    ids: Iterator[int],
) -> tuple[dict[str, Category], dict[str, tuple[str, ...]]]:
    """The categories of a layer over the nodes that are left ``below``, for some of which others
    stand in. One that has too few children gives way to promotions of those that no other category
    has; these stand in for it."""
    children = {
        one.id: tuple(
            child
            for child in dict.fromkeys(new for old in one.children for new in _now(old, stand_ins))
            if child in below
        )
        for one in categories
    }
    whole = {
        one.id
        for one in categories
        if len(children[one.id]) >= (1 if entity_key(one.name) == SPEAKER_KEY else least)
    }
    covered = {child for name in whole for child in children[name]}
    kept: dict[str, Category] = {}
    given: dict[str, tuple[str, ...]] = {}
    for category in categories:
        if category.id in whole:
            kept[category.id] = replace(category, children=children[category.id])
            continue
        alone = [child for child in children[category.id] if child not in covered]
        covered.update(alone)
        places = (category.id, *(f"c{next(ids)}" for _ in alone[1:]))[: len(alone)]
        given[category.id] = places
        for place, child in zip(places, alone, strict=True):
            node = below[child]
            kept[place] = Category(
                place, category.layer, node.name, (child,), node.summary, node.tags
            )
    return kept, given


def _now(child: str, stand_ins: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return stand_ins.get(child, (child,))


def _irredundant(kept: dict[str, Category]) -> None:
    """Drop categories whose children are all in others, the smallest and latest first: each of
    those that are left has a child of its own, so that they are no more than the nodes below."""
    parents = Counter(child for category in kept.values() for child in category.children)
    latest = list(reversed(kept.values()))
    for category in sorted(latest, key=lambda each: len(each.children)):
        if all(parents[child] > 1 for child in category.children):
            parents.subtract(category.children)
            del kept[category.id]
