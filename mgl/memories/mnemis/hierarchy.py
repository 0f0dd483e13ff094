"""The hierarchy over the entities: built anew, or updated when the base graph has grown.

Source: Mnemis §2.2; what becomes of a hierarchy when the graph grows, the paper leaves open. It is
built from the entities upwards, layer by layer. Why that stopped:

    no_entities   there is nothing to categorise
    too_few       the layer has fewer nodes than a category must have
    one_node      the layer is one category
    layer_limit   there are as many layers as there may be
    compression   the next layer would have more nodes than this one (from layer 2 on), or no
                  category at all, only promotions: it is not kept
    failed        no reply about the next layer could be used: the next build tries again

An update (ours) puts new entities into the categories of layer 1, or into new ones, by the same
prompt; what is new in a layer is put into the next in the same way. A category is described again
when its children have become half as many again (2, 3, 4, 6, 9, 13 …), so the number of its
descriptions grows with the logarithm of its size. Over time nodes gather that merge with none,
since existing categories are not regrouped: ``needs_rebuild`` says when they are too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Final, Literal

from pydantic import Field

from mgl.llm.concurrency import for_each
from mgl.llm.constraints import max_chars
from mgl.llm.prompting import fit_texts
from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import FAILED, Describe, DropHierarchy, EditDraft, FinishHierarchy
from mgl.memories.mnemis.entities import SUMMARY_CHARS, SUMMARY_TOKENS
from mgl.memories.mnemis.grouping import BY_MODEL, Grouping
from mgl.memories.mnemis.layers import Forming, carry_out, is_speaker
from mgl.memories.mnemis.prompts import DESCRIBE
from mgl.memories.mnemis.reading import clip
from mgl.memories.mnemis.state import Category, MnemisState, Node
from mgl.memories.propose import Proposal, StrictReply, propose
from mgl.prompt import one_line

DRIFT: Final = 0.3
"""Share of entities in no category that asks for a rebuild; ours."""

CHILDREN, TAGS, AT_ONCE = 30, 5, 32
"""Children shown of a category, its tags, and calls at once."""

Stopped = Literal[
    "no_entities", "too_few", "one_node", "layer_limit", "compression", "failed", "updated"
]


class _Described(StrictReply):
    summary: Annotated[str, Field(min_length=1), max_chars(SUMMARY_CHARS)]
    tags: Annotated[
        list[Annotated[str, Field(min_length=1), max_chars(32)]],
        Field(min_length=1, max_length=TAGS),
    ]


@dataclass(frozen=True, slots=True)
class HierarchyBuilder:
    """Builds and updates the hierarchy of a draft; what calls the model raises as ``propose``."""

    tools: Tools
    config: MnemisConfig
    grouping: Grouping = BY_MODEL

    async def renew(self, draft: EditDraft) -> None:
        """Build the hierarchy anew or update it, as the configuration has it."""
        if draft.state.categories and self._is_rebuilt(draft.state):
            draft.put(DropHierarchy())
        stopped = await self.grow(draft)
        draft.put(FinishHierarchy(stopped, len(draft.state.entities), draft.state.top))

    async def grow(self, draft: EditDraft) -> Stopped:
        """Put the nodes that are in no category into the hierarchy, and return why that stopped.

        Where no hierarchy stands, it is built layer by layer. One that stands gets no further
        layer; from layer 2 on a layer never comes to have more nodes than the one below: new
        categories that would make it so are refused, and their nodes promoted. Nodes of a reply
        that cannot be used are promoted.
        """
        top = draft.state.top
        for layer in count(1):
            before = draft.state
            nodes = _find_unplaced(before, layer)
            if top and (layer > top or all(map(is_speaker, nodes))):
                break
            if not top and (stopped := _find_stop(before, layer - 1, self.config)):
                return stopped
            forming = Forming(before, layer, nodes)
            await self.grouping.form(self.tools, draft, forming, self.config)
            plan = forming.settle(self.config.compression)
            is_larger = layer > 1 and plan.size > len(before.layer(layer - 1))
            if top and is_larger:
                plan = forming.settle(self.config.compression, only_known=True)
            elif not top and 0 < forming.asked == forming.failed:
                return FAILED
            elif not top and (is_larger or all(len(each.children) < 2 for each in plan.kept)):
                return "compression"
            changed = carry_out(plan, draft, layer)
            outgrown = [each for each in changed if _has_outgrown(each, before, draft.state)]
            await self.describe(draft, outgrown)
        return "updated"

    def count_calls(self, state: MnemisState) -> int | None:
        """Return how many model calls ``renew`` takes at least; None if it takes none.

        Only those of the first layer are known before their replies.
        """
        is_rebuilt = self._is_rebuilt(state)
        nodes = state.layer(0) if is_rebuilt else _find_unplaced(state, 1)
        if is_rebuilt and _find_stop(state, 0, self.config) is not None:
            return None
        if not is_rebuilt and all(map(is_speaker, nodes)):
            return None
        batch = self.grouping.batch
        return int(is_rebuilt) if batch is None else -(-len(nodes) // batch)

    async def describe_stale(self, draft: EditDraft) -> None:
        """Describe the categories that lost their description to a deletion, layer by layer.

        A hierarchy that is built anew is left to that.
        """
        for stale in self._find_stale(draft.state):
            await self.describe(draft, stale)

    def count_stale_calls(self, state: MnemisState) -> int:
        """Return how many model calls ``describe_stale`` takes."""
        return sum(len(self._find_asked(state, stale)) for stale in self._find_stale(state))

    async def describe(self, draft: EditDraft, ids: Sequence[str]) -> None:
        """Describe categories of one layer.

        A promotion is described as its child is, and what no model describes by the names of its
        children, without a call. A category whose reply cannot be used keeps what was said of it.
        """
        state = draft.state
        proposals: dict[str, Proposal[_Described]] = {}
        asked = self._find_asked(state, ids)

        async def work(category: Category) -> None:
            proposals[category.id] = await self._propose(state, category)
            layer = f"descriptions of layer {category.layer}"
            self.tools.observer.progress(layer, len(proposals), len(asked))

        await for_each(asked, work, at_once=AT_ONCE)
        for category in (state.categories[each] for each in ids):
            proposal = proposals.get(category.id)
            if category.is_promotion:
                child = state.node(category.children[0])
                if child.summary or child.tags:
                    draft.put(Describe(category.id, child.summary, child.tags))
            elif proposal is None:
                names = ", ".join(state.node(child).name for child in category.children)
                draft.put(Describe(category.id, clip(names, SUMMARY_CHARS), ()))
            elif proposal.reply is None:
                draft.fail(proposal.stage, f"{category.id}: {proposal.problem}")
            else:
                tags = tuple(dict.fromkeys(filter(None, map(one_line, proposal.reply.tags))))
                edit = Describe(category.id, one_line(proposal.reply.summary), tags)
                draft.put(edit, call_key=proposal.call_key)

    async def _propose(self, state: MnemisState, category: Category) -> Proposal[_Described]:
        llm, lines = self.tools.llm, _list_children(state, category)
        nodes = "\n".join(await fit_texts(llm, lines, reserve=SUMMARY_TOKENS))
        prompt = DESCRIBE.render(name=one_line(category.name), nodes=nodes)
        sampling = self.config.make_sampling(SUMMARY_TOKENS)
        return await propose(llm, prompt, _Described, sampling=sampling, stage="describe_category")

    def _is_rebuilt(self, state: MnemisState) -> bool:
        is_kept = self.config.hierarchy == "incremental" and state.categories
        return not is_kept or needs_rebuild(state)

    def _find_asked(self, state: MnemisState, ids: Sequence[str]) -> list[Category]:
        """Return those that a model describes."""
        own = (state.categories[each] for each in ids if self.grouping.is_described)
        return [category for category in own if not category.is_promotion]

    def _find_stale(self, state: MnemisState) -> list[list[str]]:
        """Return the stale categories of each layer, if the hierarchy is not built anew."""
        if self.config.hierarchy == "rebuild":
            return []
        return [
            [each.id for each in state.categories_of(layer) if each.id in state.stale]
            for layer in range(1, state.top + 1)
        ]


def needs_rebuild(state: MnemisState) -> bool:
    """Whether too many entities are in no category, or only in a promotion that came by an update.

    That is where their share of all is above ``DRIFT``. What an update brought is known by the
    order of the categories: a build makes one layer after the other. In a hierarchy of one layer it
    cannot be known, and only entities in no category count.
    """
    if not state.entities:
        return False
    held: set[str] = set()
    alone: set[str] = set()
    is_above = False
    for category in state.categories.values():
        is_above = is_above or category.layer > 1
        if category.layer > 1:
            continue
        (alone if is_above and category.is_promotion else held).update(category.children)
    loose = sum(
        not is_speaker(entity) and (entity.id in alone or entity.id not in held)
        for entity in state.entities.values()
    )
    return loose > DRIFT * len(state.entities)


def _find_stop(state: MnemisState, layer: int, config: MnemisConfig) -> Stopped | None:
    size = len(state.layer(layer))
    if not size:
        return "no_entities"
    if layer and size == 1:
        return "one_node"
    if size < config.compression:
        return "too_few"
    return "layer_limit" if layer == config.layers else None


def _has_outgrown(identity: str, before: MnemisState, after: MnemisState) -> bool:
    """Whether a category needs a description: it is new, has none, or has grown by half."""
    known = before.categories.get(identity)
    if known is None or not known.summary:
        return True
    size = 1
    while size <= len(known.children):
        size += max(1, size // 2)
    return len(after.categories[identity].children) >= size


def _find_unplaced(state: MnemisState, layer: int) -> list[Node]:
    """Return the nodes below a layer that are in no category of it."""
    held = {child for category in state.categories_of(layer) for child in category.children}
    return [node for node in state.layer(layer - 1) if node.id not in held]


def _list_children(state: MnemisState, category: Category) -> list[str]:
    """Return a line for each child; of many children, as many of the first as of the last."""
    nodes = [state.node(child) for child in category.children]
    if len(nodes) > CHILDREN:
        nodes = [*nodes[: CHILDREN // 2], *nodes[-CHILDREN // 2 :]]
    return [one_line(f"- {node.name} [{', '.join(node.tags)}]: {node.summary}") for node in nodes]
