"""The hierarchy is built from the entities upwards, layer by layer, until it is told to stop.

Source: Mnemis §2.2. Why it stopped:

    no_entities   there is nothing to categorise
    too_few       the layer has fewer nodes than a category must have
    one_node      the layer is one category
    layer_limit   there are as many layers as there may be
    compression   the next layer would have more nodes than this one (from layer 2 on), or no
                  category at all, promotions alone: it is not kept
"""

from __future__ import annotations

from typing import Literal

from mgl.llm.base import LLM
from mgl.memories.mnemis.categorise import form_layer
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.describing import describe
from mgl.memories.mnemis.edits import record
from mgl.memories.mnemis.layers import carried_out
from mgl.memories.mnemis.state import DropHierarchy, State, apply
from mgl.observer import SILENT, Observer
from mgl.retrieval.base import Embedder
from mgl.store import EditRecord

__all__ = ["Stopped", "build_hierarchy"]

Stopped = Literal["no_entities", "too_few", "one_node", "layer_limit", "compression"]


async def build_hierarchy(
    llm: LLM,
    embedder: Embedder,
    state: State,
    config: MnemisConfig,
    *,
    step: int,
    observer: Observer = SILENT,
) -> tuple[list[EditRecord], State, Stopped]:
    """Build all categories anew: the rows, the state after them, and why it stopped.

    Raises the EngineError family, but for ReplyInvalid: the nodes of such a reply are promoted.
    """
    rows: list[EditRecord] = []
    if state.categories:
        rows.append(record(step, DropHierarchy()))
        state = apply(state, DropHierarchy())
    layer = 0
    while (stopped := _stopped(state, layer, config)) is None:
        nodes = state.layer(layer)
        forming, made = await form_layer(
            llm, embedder, state, nodes, layer + 1, config, step=step, observer=observer
        )
        rows += made
        plan = forming.settled(nodes, config.compression)
        if not plan.groups or (layer and plan.count > len(nodes)):
            return rows, state, "compression"
        layer += 1
        made, state, changed = carried_out(plan, state, layer, step)
        rows += made
        made, state = await describe(llm, state, changed, config, step=step, observer=observer)
        rows += made
    return rows, state, stopped


def _stopped(state: State, layer: int, config: MnemisConfig) -> Stopped | None:
    count = len(state.layer(layer))
    if not count:
        return "no_entities"
    if layer and count == 1:
        return "one_node"
    if count < config.compression:
        return "too_few"
    return "layer_limit" if layer == config.layers else None
