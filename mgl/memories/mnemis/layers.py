"""A layer of categories as it forms: the rules for a reply, and what is kept when it is complete.

Source: Mnemis §2.2 and the rules of Appendix E. The nodes of a layer are categorised in batches, so
a category may get one child of one batch and one of the next; how many it has is judged at the end.
Each category has at least n children; a node that is in none is promoted: it becomes a category of
its own in the next layer. "user" and first persons are in "Speaker" or nowhere.

A reply names categories and, for each, the indexes of its nodes. ``check_groups`` says what can be
used of it, and in sentences which rules it breaks, for the call that asks again:

    bad_index         an index that no node has: left out
    and_in_name       a name with the word "and": the category is refused
    no_name           a name without a word, or too long for one: refused
    not_the_speaker   "user" and first persons elsewhere than under "Speaker": taken out
    same_children     the same nodes as an earlier category has: refused
    empty             a category without nodes: refused

Categories of one name are one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from mgl.memories.graph.names import NAME_CHARS, clean_name, entity_key
from mgl.memories.mnemis.edits import Assign, Edit, EditDraft, PutCategory
from mgl.memories.mnemis.state import SPEAKER, SPEAKER_KEY, Entity, MnemisState, Node
from mgl.prompt import one_line

SHOWN_CHILDREN, SUMMARY_WORDS = 3, 12
_FIRST_PERSONS: Final = frozenset({"user", "i", "me"})
_AND: Final = re.compile(r"\band\b", re.IGNORECASE)
_LISTED: Final = 12
_WORD: Final = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Group:
    """A category as a call proposes it: its name, and the indexes of its nodes in the batch."""

    name: str
    indexes: tuple[int, ...]
    call_key: str | None = None

    @property
    def key(self) -> str:
        """The key of its name, the same for other spellings of it."""
        return entity_key(self.name)


# Rules


def is_user(name: str) -> bool:
    """Whether a node's name is "user" or a first person, as the prompt writes them."""
    return entity_key(name) in _FIRST_PERSONS


def is_speaker(node: Node) -> bool:
    """Whether a node is an entity that is called "user" or a first person."""
    return isinstance(node, Entity) and is_user(node.name)


@dataclass(frozen=True, slots=True)
class CheckedReply:
    """A reply: the categories that can be used, those refused with the reason, and in sentences
    what breaks a rule. ``left`` counts the nodes that are in none of ``kept``."""

    kept: tuple[Group, ...]
    refused: tuple[tuple[Group, str], ...]
    problems: tuple[str, ...]
    left: int


def check_groups(
    groups: Sequence[Group], names: Sequence[str], known: Collection[str], least: int
) -> CheckedReply:
    """Check a reply about nodes of these ``names``.

    ``known`` are the keys of existing categories, which may take a single node more; a new one has
    ``least`` nodes, or one alone.
    """
    speakers = frozenset(index for index, name in enumerate(names) if is_user(name))
    kept: list[Group] = []
    refused: list[tuple[Group, str]] = []
    wrong: list[str] = []
    unnamed: list[str] = []
    sizes: list[str] = []
    holders: dict[frozenset[int], str] = {}
    seen: set[tuple[int, ...]] = set()
    under, elsewhere = set[int](), set[int]()
    has_own = bool(speakers) and SPEAKER_KEY in known
    for group in _merge_names([*groups, Group(SPEAKER, ())] if has_own else groups):
        held, is_own, is_new = set(group.indexes), group.key == SPEAKER_KEY, group.key not in known
        valid = {index for index in held if 0 <= index < len(names)}
        usable = replace(
            group,
            name=clean_name(group.name),
            indexes=tuple(sorted(valid | speakers if is_own else valid - speakers)),
        )
        reason = _find_refusal(usable)
        if reason is None and is_new:
            reason = "same_children" if usable.indexes in seen else None
            seen.add(usable.indexes)
        if reason is None:
            kept.append(usable)
        else:
            refused.append((usable, reason))

        (under if is_own else elsewhere).update(held & speakers)
        if beyond := [index for index in group.indexes if index not in valid]:
            most = len(names) - 1
            wrong.append(f'"{group.name}" has {_list(beyond)}, but the indexes are 0 to {most}.')
        if reason == "and_in_name":
            shared = "name what its nodes share, or split it"
            unnamed.append(f'"{group.name}" has the word "and": {shared}.')
        elif reason == "no_name":
            unnamed.append(f'"{group.name[:NAME_CHARS]}" is no name of a category.')
        if is_new and 1 < len(held) < least:
            sizes.append(f'"{group.name}" has fewer than {least} nodes.')
        if is_new and (same := holders.setdefault(frozenset(held), group.name)) != group.name:
            sizes.append(f'"{same}" and "{group.name}" have the same nodes.')
        has_own = has_own or is_own
    missing = sorted(speakers - under - elsewhere) if has_own else []
    told = {index for group in groups for index in group.indexes} | speakers
    left = [index for index in range(len(names)) if index not in told]
    problems = (
        *wrong,
        *unnamed,
        *([f'{_list(sorted(elsewhere))} may be in "{SPEAKER}" alone.'] if elsewhere else ()),
        *([f'{_list(missing)} must be in "{SPEAKER}".'] if missing else ()),
        *sizes,
        *([f"{_list(left)} are in no category."] if left else ()),
    )
    covered = speakers.union(*(group.indexes for group in kept))
    return CheckedReply(tuple(kept), tuple(refused), problems, len(names) - len(covered))


def _find_refusal(group: Group) -> str | None:
    if _AND.search(group.name):
        return "and_in_name"
    if not group.key or len(group.name) > NAME_CHARS:
        return "no_name"
    return None if group.indexes else "empty"


def _merge_names(groups: Sequence[Group]) -> list[Group]:
    """Merge categories of one name, under the first spelling."""
    held: dict[str, Group] = {}
    for group in groups:
        key = group.key or group.name
        first = held.setdefault(key, replace(group, indexes=()))
        indexes = dict.fromkeys((*first.indexes, *group.indexes))
        held[key] = replace(first, indexes=tuple(indexes))
    return list(held.values())


def _list(indexes: Sequence[int]) -> str:
    shown = ", ".join(map(str, indexes[:_LISTED]))
    return shown if len(indexes) <= _LISTED else f"{shown} and {len(indexes) - _LISTED} more"


# Forming


@dataclass(slots=True)
class CategoryDraft:
    """A category that exists (``id``) or is to be; ``added`` has new children, names by id."""

    name: str
    id: str | None = None
    kept: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    added: dict[str, str] = field(default_factory=dict)
    call_key: str | None = None

    @property
    def children(self) -> tuple[str, ...]:
        return (*self.kept, *self.added)

    def add(self, node: Node) -> None:
        """Add a child, unless it is one."""
        if node.id not in self.kept:
            self.added[node.id] = node.name

    def edits(self, identity: str, layer: int) -> list[Edit]:
        """Return the edits that put it into the state."""
        if self.id is None:
            return [PutCategory(identity, layer, self.name, self.children)]
        return [Assign(identity, child) for child in self.added]


@dataclass(frozen=True)
class LayerPlan:
    """What becomes of a layer: categories that are kept, those refused and nodes promoted, with
    the reasons. ``size`` is how many nodes the layer then has."""

    kept: tuple[CategoryDraft, ...]
    refused: tuple[tuple[CategoryDraft, str], ...]
    promoted: tuple[tuple[Node, str], ...]
    size: int


class Forming:
    """The categories of a layer, existing ones and those to come, over ``nodes`` below.

    Promotions are not offered for more children; one that a reply names gets them all the same.
    ``asked`` and ``failed`` count replies.
    """

    def __init__(self, state: MnemisState, layer: int, nodes: Sequence[Node]) -> None:
        self.layer = layer
        self.existing = state.categories_of(layer)
        self.nodes = nodes
        self.asked = self.failed = 0
        self._drafts: dict[str, CategoryDraft] = {}
        self._offered: dict[str, set[str]] = {}
        for category in self.existing:
            key = entity_key(category.name)
            draft = CategoryDraft(category.name, category.id, category.children, category.tags)
            self._drafts.setdefault(key, draft)
            if not category.is_promotion or key == SPEAKER_KEY:
                self._offer(key, (category.name, *category.tags))

    @property
    def offered(self) -> frozenset[str]:
        """The keys of the names of those that may have more children."""
        return frozenset(self._offered)

    def find_similar(self, nodes: Iterable[Node], most: int | None = None) -> list[CategoryDraft]:
        """Return the categories to show beside some nodes, all or ``most`` of them, in their order.

        First come those that share words with the nodes, then the largest.
        """
        chosen = list(self._offered)
        if most is not None and len(chosen) > most:
            words = {word for node in nodes for word in _words((node.name, *node.tags))}
            shared = {key: len(words & own) for key, own in self._offered.items()}
            chosen.sort(key=lambda key: (-shared[key], -len(self._drafts[key].children)))
        shown = set(chosen[:most])
        return [self._drafts[key] for key in self._offered if key in shown]

    def use(self, draft: EditDraft, checked: CheckedReply, nodes: Sequence[Node]) -> None:
        """Use what a reply says of a batch of nodes; the draft notes what is refused."""
        for group, reason in checked.refused:
            children = tuple(nodes[index].id for index in group.indexes)
            edit = PutCategory(draft.state.next_id("c"), self.layer, group.name, children)
            draft.put(edit, rejected=reason, call_key=group.call_key)
        for group in checked.kept:
            self.add(group, nodes)

    def add(self, group: Group, nodes: Sequence[Node]) -> None:
        """Give a category more children, and a new one its name."""
        new = CategoryDraft(group.name, call_key=group.call_key)
        draft = self._drafts.setdefault(group.key, new)
        for index in group.indexes:
            draft.add(nodes[index])
        tags = (tag for index in group.indexes for tag in nodes[index].tags)
        self._offer(group.key, (group.name, *tags))

    def settle(self, least: int, *, only_known: bool = False) -> LayerPlan:
        """Return the plan for the layer; ``only_known`` refuses new categories.

        A node that is left over goes to the category of its own name, if any, or is promoted; one
        of the first person without a category "Speaker" is skipped, as Appendix E has it.
        """
        kept: dict[str, CategoryDraft] = {}
        refused: list[tuple[CategoryDraft, str]] = []
        single: set[str] = set()
        seen = {frozenset(category.children) for category in self.existing}
        for key, draft in self._drafts.items():
            children = frozenset(draft.children)
            if not draft.added:
                continue
            if len(children) == 1 and key != SPEAKER_KEY:
                single |= children
            elif only_known and draft.id is None:
                refused.append((draft, "compression"))
            elif 1 < len(children) < least:
                refused.append((draft, "too_few_children"))
            elif children in seen:
                refused.append((draft, "same_children"))
            else:
                seen.add(children)
                kept[key] = draft
        covered = {child for draft in kept.values() for child in draft.added}
        promoted: list[tuple[Node, str]] = []
        for node in self.nodes:
            if node.id in covered or is_speaker(node):
                continue
            key = entity_key(node.name)
            own = self._drafts.get(key)
            if own and (own.id or key in kept) and len(own.children) + 1 >= least:
                own.add(node)
                kept[key] = own
            else:
                promoted.append((node, "single_child" if node.id in single else "left_over"))
        new = sum(draft.id is None for draft in kept.values())
        size = len(self.existing) + new + len(promoted)
        return LayerPlan(tuple(kept.values()), tuple(refused), tuple(promoted), size)

    def _offer(self, key: str, texts: Iterable[str]) -> None:
        self._offered.setdefault(key, set()).update(_words(texts))


def carry_out(plan: LayerPlan, draft: EditDraft, layer: int) -> list[str]:
    """Put a plan into the state; returns the categories whose children changed."""
    changed: list[str] = []
    ids = (f"c{number}" for number in count(draft.state.counts.get("c", 0) + 1))
    for category in plan.kept:
        changed.append(category.id or next(ids))
        for edit in category.edits(changed[-1], layer):
            draft.put(edit, call_key=category.call_key)
    for node, reason in plan.promoted:
        changed.append(next(ids))
        draft.put(PutCategory(changed[-1], layer, node.name, (node.id,)), repaired=reason)
    for category, reason in plan.refused:
        for edit in category.edits(category.id or next(ids), layer):
            draft.put(edit, rejected=reason, call_key=category.call_key)
    return changed


def summarize_node(node: Node | CategoryDraft) -> str:
    """Return what a prompt shows beside a name: tags, or the beginning of the summary.

    Of a category that is not described yet, it is the first children.
    """
    text = ", ".join(node.tags)
    if not text and isinstance(node, CategoryDraft):
        text = ", ".join(list(node.added.values())[:SHOWN_CHILDREN])
    elif not text and not isinstance(node, CategoryDraft):
        words = node.summary.split()
        text = " ".join(words[:SUMMARY_WORDS]) + (" …" if len(words) > SUMMARY_WORDS else "")
    return one_line(text)


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in _WORD.findall(text.casefold())}
