"""A layer of categories as it forms, and what is left of it when it is complete.

Source: Mnemis §2.2. The nodes of a layer are categorised in batches, so that a category may get
one child of one batch and one of the next; how many it has is judged at the end. Each category has
n children at least; a node that is in none is promoted: it goes on as a category of its own.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from mgl.memories.graph.names import entity_key
from mgl.memories.mnemis.edits import record
from mgl.memories.mnemis.nodes import Category, Entity
from mgl.memories.mnemis.rules import SPEAKER_KEY, Group
from mgl.memories.mnemis.state import Assign, Edit, PutCategory, State, replay
from mgl.store import EditRecord

__all__ = ["Draft", "Forming", "Node", "Plan", "carried_out", "refusals"]

Node = Entity | Category

_WORD: Final = re.compile(r"\w{3,}")
_HOLDERS = 200  # categories that are remembered for a word, the latest of them


@dataclass(slots=True)
class Draft:
    """A category that is there (``id``) or is to be; ``added`` are its new children."""

    name: str
    id: str | None = None
    there: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    added: dict[str, str] = field(default_factory=dict)  # ids and names
    call_key: str | None = None

    @property
    def size(self) -> int:
        return len(self.there) + len(self.added)

    @property
    def children(self) -> tuple[str, ...]:
        return (*self.there, *self.added)

    def add(self, node: Node) -> None:
        if node.id not in self.there:
            self.added[node.id] = node.name


@dataclass(frozen=True)
class Plan:
    """What becomes of a layer: the categories that are kept, those that are refused with the
    reason, and the nodes that are promoted. ``count`` is how many nodes the layer then has."""

    kept: tuple[Draft, ...]
    refused: tuple[tuple[Draft, str], ...]
    promoted: tuple[tuple[Node, str], ...]
    count: int

    @property
    def groups(self) -> bool:
        """Whether any category is more than a promotion."""
        return any(draft.size > 1 for draft in self.kept)


class Forming:
    """The categories of a layer: those that are there, and those to come.

    Promotions are not offered for more children; one that is named gets them all the same.
    """

    def __init__(self, state: State, layer: int) -> None:
        self._there = tuple(each for each in state.layer(layer) if isinstance(each, Category))
        self._drafts: dict[str, Draft] = {}
        self._offered: dict[str, None] = {}
        self._holders: dict[str, dict[str, None]] = {}
        for category in self._there:
            key = entity_key(category.name)
            draft = Draft(category.name, category.id, category.children, category.tags)
            self._drafts.setdefault(key, draft)
            if not category.promoted or key == SPEAKER_KEY:
                self._offer(key, (category.name, *category.tags))

    @property
    def offered(self) -> Collection[str]:
        """The keys of the names of those that may have more children."""
        return self._offered.keys()

    def like(self, nodes: Iterable[Node], most: int) -> list[Draft]:
        """The categories to show beside some nodes, ``most`` of them, in the order in which they
        came: first those that share words with the nodes, then the largest."""
        chosen = set(self._offered)
        if len(chosen) > most:
            words = {word for node in nodes for word in _words((node.name, *node.tags))}
            shared = Counter(key for word in words for key in self._holders.get(word, ()))
            chosen = {key for key, _ in shared.most_common(most)}
            rest = ((self._drafts[key].size, key) for key in self._offered if key not in chosen)
            chosen |= {key for _, key in heapq.nlargest(most - len(chosen), rest)}
        return [self._drafts[key] for key in self._offered if key in chosen]

    def take(self, groups: Iterable[Group], nodes: Sequence[Node], call_key: str | None) -> None:
        """Add what a reply says of a batch of nodes."""
        for group in groups:
            draft = self._drafts.setdefault(group.key, Draft(group.name, call_key=call_key))
            for index in group.indexes:
                draft.add(nodes[index])
            tags = (tag for index in group.indexes for tag in nodes[index].tags)
            self._offer(group.key, (group.name, *tags))

    def settled(self, nodes: Iterable[Node], least: int, *, only_known: bool = False) -> Plan:
        """The plan for the layer above some nodes; ``only_known`` refuses new categories.

        A node that is left goes to the category of its own name, if there is one, or is promoted.
        """
        kept: dict[str, Draft] = {}
        refused: list[tuple[Draft, str]] = []
        single: set[str] = set()
        seen = {frozenset(category.children) for category in self._there}
        for key, draft in self._drafts.items():
            if not draft.added:
                continue
            children = frozenset(draft.children)
            if draft.size == 1 and key != SPEAKER_KEY:
                single |= children
            elif only_known and draft.id is None:
                refused.append((draft, "compression"))
            elif 1 < draft.size < least:
                refused.append((draft, "too_few_children"))
            elif children in seen:
                refused.append((draft, "same_children"))
            else:
                seen.add(children)
                kept[key] = draft
        covered = {child for draft in kept.values() for child in draft.added}
        promoted: list[tuple[Node, str]] = []
        for node in nodes:
            if node.id in covered:
                continue
            key = entity_key(node.name)
            own = self._drafts.get(key)
            if own is not None and (own.id or key in kept) and own.size + 1 >= least:
                own.add(node)
                kept[key] = own
            else:
                promoted.append((node, "single_child" if node.id in single else "left_over"))
        new = sum(draft.id is None for draft in kept.values())
        total = len(self._there) + new + len(promoted)
        return Plan(tuple(kept.values()), tuple(refused), tuple(promoted), total)

    def _offer(self, key: str, texts: Iterable[str]) -> None:
        self._offered.setdefault(key)
        for word in _words(texts):
            holders = self._holders.setdefault(word, {})
            holders.pop(key, None)
            holders[key] = None
            if len(holders) > _HOLDERS:
                holders.pop(next(iter(holders)))


def refusals(
    refused: Iterable[tuple[Group, str]],
    nodes: Sequence[Node],
    state: State,
    layer: int,
    step: int,
    call_keys: Mapping[str, str | None],
) -> list[EditRecord]:
    """The rows of groups of some nodes that cannot be categories of a layer, each with the reason
    and the call that proposed it, by the key of its name."""
    return [
        record(
            step,
            PutCategory(
                state.next_id("c"), layer, group.name, tuple(nodes[i].id for i in group.indexes)
            ),
            rejected=reason,
            call_key=call_keys.get(group.key),
        )
        for group, reason in refused
    ]


def carried_out(
    plan: Plan, state: State, layer: int, step: int
) -> tuple[list[EditRecord], State, list[str]]:
    """The rows of a plan, the state after it, and the categories whose children changed."""
    rows: list[EditRecord] = []
    edits: list[Edit] = []
    changed: list[str] = []
    ids = (f"c{number}" for number in count(state.counts.get("c", 0) + 1))
    for draft in plan.kept:
        own = draft.id or next(ids)
        changed.append(own)
        for edit in _edits(draft, own, layer):
            edits.append(edit)
            rows.append(record(step, edit, call_key=draft.call_key))
    for node, reason in plan.promoted:
        promotion = PutCategory(next(ids), layer, node.name, (node.id,))
        changed.append(promotion.id)
        edits.append(promotion)
        rows.append(record(step, promotion, repaired=reason))
    for draft, reason in plan.refused:
        key = draft.call_key
        for refused in _edits(draft, draft.id or next(ids), layer):
            rows.append(record(step, refused, rejected=reason, call_key=key))
    return rows, replay(edits, state), changed


def _edits(draft: Draft, own: str, layer: int) -> list[Edit]:
    if draft.id is None:
        return [PutCategory(own, layer, draft.name, draft.children)]
    return [Assign(own, child) for child in draft.added]


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text.casefold())}
