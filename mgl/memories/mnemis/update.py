"""The hierarchy follows the base graph without being built anew. Ours: the paper leaves it open.

Entities that are in no category are put into those of layer 1, or into new ones, by the same
prompt; what is new in a layer is put into the next in the same way, up to the top. Where a batch
has room, nodes that merged with none so far are offered again beside the new ones. A category is
described again when its children have become half as many again (with 2, 3, 4, 6, 9, 13 of them),
so that one is described so often as the logarithm of its size, and not for each child. Over time
nodes gather that merge with none, since what is there is not regrouped: ``needs_rebuild`` says
when there are too many of them.
"""

from __future__ import annotations

from mgl.llm.base import LLM
from mgl.memories.mnemis.categorise import form_layer
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.describing import describe
from mgl.memories.mnemis.layers import Node, carried_out
from mgl.memories.mnemis.nodes import Category
from mgl.memories.mnemis.rules import is_speaker
from mgl.memories.mnemis.state import State
from mgl.retrieval.base import Embedder
from mgl.store import EditRecord

__all__ = ["needs_rebuild", "update_hierarchy"]

TOGETHER = 6  # categories described in one call


async def update_hierarchy(
    llm: LLM, embedder: Embedder, state: State, config: MnemisConfig, *, step: int
) -> tuple[list[EditRecord], State]:
    """Take the hierarchy further to the entities that are in no category; where there is no
    hierarchy, nothing.

    From layer 2 on a layer never comes to have more nodes than the one below: new categories that
    would make it so are refused, and their nodes promoted. Raises the EngineError family, but for
    ReplyInvalid: the nodes of such a reply are promoted.
    """
    rows: list[EditRecord] = []
    for layer in range(1, state.top + 1):
        fresh, alone = _to_place(state, layer)
        if not fresh:
            break
        room = -len(fresh) % config.batch
        again = alone[max(0, len(alone) - room) :]
        forming, made = await form_layer(
            llm, embedder, state, fresh, layer, config, step=step, again=again
        )
        rows += made
        plan = forming.settled(fresh, config.compression)
        if layer > 1 and plan.count > len(state.layer(layer - 1)):
            plan = forming.settled(fresh, config.compression, only_known=True)
        before = state
        made, state, changed = carried_out(plan, state, layer, step)
        rows += made
        outgrown = [each for each in changed if _outgrown(each, before, state)]
        made, state = await describe(llm, state, outgrown, config, step=step, together=TOGETHER)
        rows += made
    return rows, state


def needs_rebuild(state: State, config: MnemisConfig) -> bool:
    """Whether too many entities are in no category, or in one of their own alone that came since
    the hierarchy was built: the share of them among all is above ``drift``.

    What came since is known by the order of the categories: a build makes one layer after the
    other. In a hierarchy of one layer it cannot be told, and only those in no category count.
    """
    if not state.entities:
        return False
    held: set[str] = set()
    alone: set[str] = set()
    above = False
    for category in state.categories.values():
        above = above or category.layer > 1
        if category.layer > 1:
            continue
        if above and category.promoted:
            alone.update(category.children)
        else:
            held.update(category.children)
    loose = sum(entity in alone or entity not in held for entity in state.entities)
    return loose > config.drift * len(state.entities)


def _outgrown(category: str, before: State, after: State) -> bool:
    """Whether a category is to be described: it is new, was not, or has grown by half."""
    known = before.categories.get(category)
    if known is None or not known.summary:
        return True
    size = 1
    while size <= len(known.children):
        size += max(1, size // 2)
    return len(after.categories[category].children) >= size


def _to_place(state: State, layer: int) -> tuple[list[Node], list[Node]]:
    """The nodes below a layer that are in none of its categories, and those that are in one of
    their own alone."""
    held: set[str] = set()
    alone: set[str] = set()
    for category in state.layer(layer):
        assert isinstance(category, Category)
        (alone if category.promoted else held).update(category.children)
    below = state.layer(layer - 1)
    return (
        [node for node in below if node.id not in held and node.id not in alone],
        [n for n in below if n.id in alone and n.id not in held and not is_speaker(n.name)],
    )
