"""The nodes of a layer are put into categories, batch by batch, with the prompt of Appendix E.

Batches come one after the other, because each is shown the categories of those before it. A reply
that breaks a rule (``rules``) is told which, once; of the two replies the one that leaves fewer
nodes out is used, as far as it can be.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message, Reply
from mgl.llm.constraints import index_set, max_chars
from mgl.llm.replies import REPAIR
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import Failed, record
from mgl.memories.mnemis.layers import Draft, Forming, Node, refusals
from mgl.memories.mnemis.likeness import form_by_likeness
from mgl.memories.mnemis.nodes import Category
from mgl.memories.mnemis.printed import CATEGORIES, CATEGORIES_SYSTEM, GUIDANCE
from mgl.memories.mnemis.rules import Group, broken, left_over, mended
from mgl.memories.mnemis.state import State
from mgl.observer import SILENT, Observer
from mgl.prompt import one_line
from mgl.retrieval.base import Embedder
from mgl.store import EditRecord

__all__ = ["form_layer", "told_of"]

NONE = "None"
NAME_LENGTH, FEWEST, EXAMPLES, SHOWN_CHILDREN, SUMMARY_WORDS = 48, 4, 5, 3, 12


class _Item(BaseModel):
    """Appendix E's output format. The indexes are checked by ``rules``."""

    model_config = ConfigDict(extra="forbid")

    category: Annotated[str, Field(min_length=1), max_chars(NAME_LENGTH)]
    indexes: list[int]


@dataclass(frozen=True, slots=True)
class _Said:
    groups: list[Group]
    refused: list[tuple[Group, str]]
    call_key: str | None
    failed: str | None = None


async def form_layer(
    llm: LLM,
    embedder: Embedder,
    state: State,
    nodes: Sequence[Node],
    layer: int,
    config: MnemisConfig,
    *,
    step: int,
    again: Sequence[Node] = (),
    observer: Observer = SILENT,
) -> tuple[Forming, list[EditRecord]]:
    """Categorise some nodes of the layer below, and offer some that have a place ``again``; the
    rows are what could not be used.

    Raises the EngineError family, but for ReplyInvalid.
    """
    if config.grouping == "likeness":
        return await form_by_likeness(
            llm, embedder, state, nodes, layer, config, step=step, again=again, observer=observer
        )
    forming = Forming(state, layer)
    rows: list[EditRecord] = []
    example = _example(state, layer - 1)
    placed = {node.id for node in again}
    batches = _batches([*nodes, *again], config.batch)
    for done, batch in enumerate(batches, start=1):
        free = {index for index, node in enumerate(batch) if node.id in placed}
        said = await _categorised(llm, batch, free, forming, layer, example, config)
        if said.failed is not None:
            rows.append(record(step, Failed("categorise", said.failed), rejected="reply_invalid"))
        calls = {group.key: said.call_key for group, _ in said.refused}
        rows += refusals(said.refused, batch, state, layer, step, calls)
        forming.take(said.groups, batch, said.call_key)
        observer.progress(f"categories of layer {layer}", done, len(batches))
    return forming, rows


def told_of(node: Node | Draft) -> str:
    """What describes a node: its tags, or else how its summary begins; of a category that is not
    described yet, its first children."""
    told = ", ".join(node.tags)
    if not told and isinstance(node, Draft):
        told = ", ".join(list(node.added.values())[:SHOWN_CHILDREN])
    elif not told and not isinstance(node, Draft):
        words = node.summary.split()
        told = " ".join(words[:SUMMARY_WORDS]) + (" …" if len(words) > SUMMARY_WORDS else "")
    return one_line(told)


async def _categorised(
    llm: LLM,
    nodes: Sequence[Node],
    free: Collection[int],
    forming: Forming,
    layer: int,
    example: str,
    config: MnemisConfig,
) -> _Said:
    names, known = [node.name for node in nodes], frozenset(forming.offered)
    shown = forming.like(nodes, config.shown)
    messages = _asked(nodes, shown, layer, example)
    try:
        reply, groups = await _call(llm, messages, len(nodes), config, "categorise")
    except ReplyInvalid as error:
        return _Said([], [], None, error.message)
    said = _Said(*mended(groups, names, known), reply.call_key)
    problems = broken(groups, names, known, config.compression, free)
    if not problems:
        return said
    told = REPAIR.render(reason="\n".join(problems))
    again = [*messages, Message("assistant", reply.text), Message("user", told)]
    try:
        reply, groups = await _call(llm, again, len(nodes), config, "categorise_again")
    except ReplyInvalid:
        return said
    second = _Said(*mended(groups, names, known), reply.call_key)
    left, still_left = (left_over(each.groups, names, free) for each in (said, second))
    return second if len(still_left) <= len(left) else said


async def _call(
    llm: LLM, messages: Sequence[Message], count: int, config: MnemisConfig, stage: str
) -> tuple[Reply[Any], list[Group]]:
    sampling = config.sampling(config.extraction_tokens)
    reply = await llm.complete(messages, _schema(count), sampling=sampling, stage=stage)
    items: list[_Item] = reply.parsed.root
    return reply, [Group(one_line(item.category), tuple(item.indexes)) for item in items]


@cache
def _schema(count: int) -> type[RootModel[Any]]:
    """The reply about so many nodes: decoding is held to their indexes, validation is not."""
    indexes = Annotated[list[int], WithJsonSchema(_indexes(count))]
    item: Any = create_model("category", __base__=_Item, indexes=(indexes, ...))
    most = Field(max_length=max(FEWEST, count))
    return RootModel[Annotated[list[item], most]]


def _indexes(count: int) -> dict[str, Any]:
    return TypeAdapter(index_set(count, least=1)).json_schema()


def _asked(
    nodes: Sequence[Node], shown: Sequence[Draft], layer: int, example: str
) -> list[Message]:
    content = "\n".join(f"{index}. {_shown(node)}" for index, node in enumerate(nodes))
    existing = "\n".join(f"- {_shown(draft)}" for draft in shown)
    guidance = GUIDANCE.render(
        layer=str(layer), previous_layer=str(layer - 1), prev_example=example
    )
    prompt = CATEGORIES.render(
        content=content, existing_categories=existing or NONE, guidance=guidance
    )
    return [Message("system", CATEGORIES_SYSTEM.text), Message("user", prompt)]


def _shown(node: Node | Draft) -> str:
    return f"{one_line(node.name)}: [{told_of(node)}]"


def _example(state: State, layer: int) -> str:
    """Some categories of a layer with some children, as the prompt writes its examples."""
    lines = []
    for category in state.layer(layer):
        if isinstance(category, Category) and not category.promoted:
            names = [state.node(child).name for child in category.children[:SHOWN_CHILDREN]]
            listed = ", ".join(f'"{name}"' for name in names)
            lines.append(f'- {listed} -> "{category.name}"')
        if len(lines) == EXAMPLES:
            break
    return "\n".join(lines) or NONE


def _batches(nodes: Sequence[Node], most: int) -> list[Sequence[Node]]:
    """The nodes in batches of nearly one size."""
    count = -(-len(nodes) // most)
    bounds = [len(nodes) * place // max(1, count) for place in range(count + 1)]
    return [nodes[begin:end] for begin, end in pairwise(bounds)]
