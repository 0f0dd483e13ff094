"""System-2: from the top layer down, the model selects nodes that could help, to the entities.

Source: Mnemis §2.3, prompt in Appendix E. A selected category offers its children in the layer
below; with ``get_all_children`` all below it is taken without being offered. The entities are the
last layer that is offered (the released loop never offers them: the paper does). A promotion is the
node below it under the same name: one that is selected is not asked about again. A model that
selects everything is stopped after ``MOST_CALLS`` (ours).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from pydantic import Field, RootModel, WithJsonSchema, create_model

from mgl.llm.base import LLM, Sampling
from mgl.llm.constraints import one_of
from mgl.memories.mnemis.config import REPLY_TOKENS, MnemisConfig
from mgl.memories.mnemis.layers import summarize_node
from mgl.memories.mnemis.prompts import SELECTION
from mgl.memories.mnemis.reading import in_batches
from mgl.memories.mnemis.state import MnemisState, Node
from mgl.memories.propose import StrictReply, propose
from mgl.prompt import one_line

SHOWN: Final = 60
"""Nodes offered in one call; ours."""

MOST_CALLS: Final = 100
"""Calls of a selection, beyond which nothing is offered; ours."""

WITHOUT_HIERARCHY: Final = 4
"""Calls over entities that no category holds together, at most."""

Path = tuple[str, ...]
Picks = list[tuple[str, bool]]
"""The selected nodes, each with whether all below it is taken."""

Ask = Callable[[LLM, Sequence[Node], str, Sampling], Awaitable[Picks | None]]
"""Asks which of some nodes could help a query; None where the reply cannot be used."""


@dataclass(frozen=True, slots=True)
class LayerCount:
    """How many nodes of a layer were offered, selected, and selected with all below them."""

    layer: int
    offered: int
    selected: int
    taken_whole: int


@dataclass(frozen=True)
class Selection:
    """The entities that were reached, and the path to each: categories from the top, if any.

    ``categories`` are those that were selected on the way, or lie below one that was taken whole.
    ``failed`` counts replies that could not be used: nothing they were asked about is selected.
    ``cut`` counts nodes that were not offered because the calls had run out.
    """

    entities: tuple[str, ...] = ()
    paths: Mapping[str, Path] = field(default_factory=dict)
    categories: tuple[str, ...] = ()
    layers: tuple[LayerCount, ...] = ()
    failed: int = 0
    cut: int = 0


class _Picked(StrictReply):
    """What the prompt asks of a selected node."""

    name: str
    uuid: str
    get_all_children: bool


async def ask_printed(
    llm: LLM, nodes: Sequence[Node], query: str, sampling: Sampling
) -> Picks | None:
    info = "\n".join(
        f'- name: "{one_line(node.name)}", uuid: "{node.id}", tag: [{summarize_node(node)}]'
        for node in nodes
    )
    prompt = SELECTION.render(query=query, nodes_info=info)
    reply = (await propose(llm, prompt, _schema(nodes), sampling=sampling, stage="select")).reply
    if reply is None:
        return None
    return [(node.uuid, node.get_all_children) for node in reply.root]


async def select(
    llm: LLM, state: MnemisState, query: str, config: MnemisConfig, ask: Ask = ask_printed
) -> Selection:
    """Select entities for a query. Raises what ``propose`` raises.

    Without a hierarchy only the entities are offered, if they are few.
    """
    top = state.top
    if not top and len(state.entities) > WITHOUT_HIERARCHY * SHOWN:
        return Selection()
    offered: dict[str, Path] = {node.id: () for node in state.layer(top)}
    certain: set[str] = set()
    reached: dict[str, Path] = {}
    selected: dict[str, None] = {}
    counts: list[LayerCount] = []
    failed = cut = 0
    calls = MOST_CALLS
    for layer in range(top, -1, -1):
        due = [state.node(each) for each in offered if each not in certain]
        asked = due[: calls * SHOWN]
        calls -= -(-len(asked) // SHOWN)
        cut += len(due) - len(asked)
        picked, lost = await _pick(llm, asked, query, config, ask)
        failed += lost
        if asked:
            whole = sum(picked.values()) if layer else 0
            counts.append(LayerCount(layer, len(asked), len(picked), whole))
        chosen = {k: path for k, path in offered.items() if k in picked or k in certain}
        taken = {k: path for k, path in chosen.items() if picked.get(k) or not layer}
        reached = _below(state, taken) | reached
        selected |= dict.fromkeys(chosen)
        offered, certain = _list_children(state, chosen, but=reached)
    found = {each: reached[each] for each in state.entities if each in reached}
    passed = dict.fromkeys((*selected, *reached))
    own = (state.categories[each] for each in passed if each in state.categories)
    categories = tuple(each.id for each in own if not each.is_promotion)
    return Selection(tuple(found), found, categories, tuple(counts), failed, cut)


async def _pick(
    llm: LLM, nodes: Sequence[Node], query: str, config: MnemisConfig, ask: Ask
) -> tuple[dict[str, bool], int]:
    """Return the selected nodes, with whether all below is taken, and how many replies failed."""
    sampling = config.make_sampling(REPLY_TOKENS)
    replies = await asyncio.gather(
        *(ask(llm, part, query, sampling) for part in in_batches(nodes, SHOWN))
    )
    picked: dict[str, bool] = {}
    for uuid, whole in (pick for reply in replies for pick in reply or ()):
        picked[uuid] = whole or picked.get(uuid, False)
    return picked, sum(reply is None for reply in replies)


def _schema(nodes: Sequence[Node]) -> type[RootModel[Any]]:
    """Return the schema of a list of the offered nodes.

    The grammar ties each name to its uuid, so that a model which writes a name has chosen;
    validation asks for a uuid that was offered, whatever the name.
    """
    kind: Any = create_model(
        "node", __base__=_Picked, uuid=(one_of([node.id for node in nodes]), ...)
    )
    options = [
        {
            "type": "object",
            "properties": {
                "name": {"const": one_line(node.name)},
                "uuid": {"const": node.id},
                "get_all_children": {"type": "boolean"},
            },
            "required": ["name", "uuid", "get_all_children"],
            "additionalProperties": False,
        }
        for node in nodes
    ]
    shape = WithJsonSchema({"anyOf": options})
    return RootModel[Annotated[list[Annotated[kind, shape]], Field(max_length=len(nodes))]]


def _list_children(
    state: MnemisState, chosen: Mapping[str, Path], *, but: Collection[str]
) -> tuple[dict[str, Path], set[str]]:
    """Return the children of chosen categories with their paths, and those of chosen promotions."""
    offered: dict[str, Path] = {}
    certain: set[str] = set()
    for parent, path in chosen.items():
        category = state.categories.get(parent)
        if category is None:
            continue
        for child in category.children:
            if child not in but:
                offered.setdefault(child, (*path, parent))
                if category.is_promotion:
                    certain.add(child)
    return offered, certain


def _below(state: MnemisState, taken: Mapping[str, Path]) -> dict[str, Path]:
    """Return some nodes and all below them, each with a path to it."""
    found: dict[str, Path] = {}
    stack = list(taken.items())[::-1]
    while stack:
        node, path = stack.pop()
        if node in found:
            continue
        found[node] = path
        if node in state.categories:
            below = state.categories[node].children
            stack += [(child, (*path, node)) for child in reversed(below)]
    return found
