"""What a deletion leaves of the hierarchy.

Ours: the paper leaves deletion to a rebuild. Every node that is left still has a way to the top, no
layer above the first has more nodes than the one below it, and each category has enough children or
is a promotion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mgl.memories.graph.names import entity_key
from mgl.memories.mnemis.state import SPEAKER_KEY, Category, Entity


def prune_hierarchy(
    categories: Sequence[Category], entities: Mapping[str, Entity], least: int, ids: Iterator[int]
) -> dict[str, Category]:
    """The categories over the entities that are left, layer by layer.

    ``least`` is how many children a category has, ``ids`` are numbers that no category had.
    """
    made: dict[str, Category] = {}
    below: Mapping[str, Entity | Category] = entities
    stand_ins: dict[str, tuple[str, ...]] = {}
    for layer in range(1, max((each.layer for each in categories), default=0) + 1):
        own = [each for each in categories if each.layer == layer]
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
