"""The model's part in a hierarchy: putting nodes into categories, and describing these.

Source: Mnemis §2.2, prompt in Appendix E; the paper prints none for descriptions. Batches of nodes
come one after the other, because each is shown the categories of those before it. A reply that
breaks a rule (``layers``) is told which, once; of the two replies the one that leaves fewer nodes
out is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any

from pydantic import BaseModel, Field, RootModel, TypeAdapter, WithJsonSchema, create_model

from mgl.llm.base import LLM, Message
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import index_set, max_chars
from mgl.llm.prompting import fit_texts
from mgl.llm.replies import REPAIR
from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import Describe, EditDraft
from mgl.memories.mnemis.entities import SUMMARY_CHARS, SUMMARY_TOKENS
from mgl.memories.mnemis.extract import StrictReply, propose_again
from mgl.memories.mnemis.layers import (
    SHOWN_CHILDREN,
    CategoryDraft,
    Forming,
    Group,
    find_left_over,
    find_violations,
    put_refused,
    repair_groups,
    summarize_node,
)
from mgl.memories.mnemis.prompts import (
    CATEGORIES,
    CATEGORIES_SYSTEM,
    DESCRIBE,
    DESCRIBE_SEVERAL,
    GUIDANCE,
)
from mgl.memories.mnemis.state import Category, Node, State
from mgl.memories.propose import Proposal, propose
from mgl.prompt import one_line

NONE = "None"
NAME_LENGTH, FEWEST, EXAMPLES = 48, 4, 5
CHILDREN, FEWER_CHILDREN, TAGS, AT_ONCE = 30, 12, 5, 32
_MARGIN = 500
"""Tokens that a reply's repair and a model's own marks may take."""


class _Item(StrictReply):
    """Appendix E's output format. The indexes are checked by ``layers``."""

    category: Annotated[str, Field(min_length=1), max_chars(NAME_LENGTH)]
    indexes: list[int]


class _Described(StrictReply):
    summary: Annotated[str, Field(min_length=1), max_chars(SUMMARY_CHARS)]
    tags: Annotated[
        list[Annotated[str, Field(min_length=1), max_chars(32)]],
        Field(min_length=1, max_length=TAGS),
    ]


@dataclass(frozen=True, slots=True)
class _Sorted:
    """What can be used of a reply about a batch, and what is refused."""

    groups: list[Group]
    refused: list[tuple[Group, str]]
    call_key: str | None


# Categorising


async def form_by_model(
    tools: Tools, draft: EditDraft, forming: Forming, config: MnemisConfig
) -> None:
    """Have the model put the nodes of a layer into categories, batch by batch.

    The draft gets rows of what could not be used. Raises what ``propose`` raises.
    """
    example = _example(draft.state, forming.layer - 1)
    batches = _split(forming.nodes, config.batch)
    for done, batch in enumerate(batches, start=1):
        messages = await _build_messages(tools.llm, batch, forming, example, config)
        failures = draft.state.failed_builds
        about = messages, len(batch), config
        first = await _propose_groups(tools.llm, *about, "categorise", failures)
        forming.asked += 1
        if first.reply is None:
            forming.failed += 1
            draft.fail(first.stage, first.problem)
        else:
            made = await _sort(tools.llm, first, messages, batch, forming, config)
            keys = {group.key: made.call_key for group, _ in made.refused}
            put_refused(draft, made.refused, batch, forming.layer, keys)
            for group in made.groups:
                forming.add(group, batch, made.call_key)
        tools.observer.progress(f"categories of layer {forming.layer}", done, len(batches))


async def _sort(
    llm: LLM,
    first: Proposal[Any],
    messages: Sequence[Message],
    nodes: Sequence[Node],
    forming: Forming,
    config: MnemisConfig,
) -> _Sorted:
    """Return what can be used of a reply; one that breaks rules is asked for again, once."""
    names, known = [node.name for node in nodes], forming.offered
    free = {index for index, node in enumerate(nodes) if node.id in forming.placed}
    groups = _groups(first)
    made = _Sorted(*repair_groups(groups, names, known), first.call_key)
    problems = find_violations(groups, names, known, config.compression, free)
    if not problems:
        return made
    reason = REPAIR.render(reason="\n".join(problems))
    messages = [*messages, Message("assistant", first.text), Message("user", reason)]
    second = await _propose_groups(llm, messages, len(nodes), config, "categorise_again")
    if second.reply is None:
        return made
    remade = _Sorted(*repair_groups(_groups(second), names, known), second.call_key)
    left, still_left = (find_left_over(each.groups, names, free) for each in (made, remade))
    return remade if len(still_left) <= len(left) else made


async def _propose_groups(
    llm: LLM,
    messages: Sequence[Message],
    size: int,
    config: MnemisConfig,
    stage: str,
    failures: int = 0,
) -> Proposal[Any]:
    sampling = config.sampling(config.extraction_tokens)
    return await propose_again(llm, messages, _schema(size), sampling, stage, failures)


def _groups(proposal: Proposal[Any]) -> list[Group]:
    items: list[_Item] = proposal.reply.root  # type: ignore[union-attr]
    return [Group(one_line(item.category), tuple(item.indexes)) for item in items]


@cache
def _schema(size: int) -> type[RootModel[Any]]:
    """Return the reply about so many nodes: decoding is held to their indexes, validation not."""
    shape = TypeAdapter(index_set(size, least=1)).json_schema()
    indexes = Annotated[list[int], WithJsonSchema(shape)]
    item: Any = create_model("category", __base__=_Item, indexes=(indexes, ...))
    most = Field(max_length=max(FEWEST, size))
    return RootModel[Annotated[list[item], most]]


async def _build_messages(
    llm: LLM, nodes: Sequence[Node], forming: Forming, example: str, config: MnemisConfig
) -> list[Message]:
    """All existing categories are shown; if they do not fit the context, the most similar."""
    content = "\n".join(f"{index}. {_line(node)}" for index, node in enumerate(nodes))
    guidance = GUIDANCE.render(
        layer=str(forming.layer), previous_layer=str(forming.layer - 1), prev_example=example
    )
    known = forming.find_similar(nodes)
    room = llm.context_tokens - 3 * config.extraction_tokens - _MARGIN
    while True:
        existing = "\n".join(f"- {_line(category)}" for category in known)
        prompt = CATEGORIES.render(
            content=content, existing_categories=existing or NONE, guidance=guidance
        )
        messages = [Message("system", CATEGORIES_SYSTEM.text), Message("user", prompt)]
        texts = [message.content for message in messages]
        if not known or sum(await llm.count_tokens(texts)) <= room:
            return messages
        known = forming.find_similar(nodes, len(known) // 2)


def _line(node: Node | CategoryDraft) -> str:
    return f"{one_line(node.name)}: [{summarize_node(node)}]"


def _example(state: State, layer: int) -> str:
    """Return some categories of a layer with some children, as the prompt writes its examples."""
    lines = []
    for category in state.categories_of(layer):
        if not category.is_promotion:
            names = [state.node(child).name for child in category.children[:SHOWN_CHILDREN]]
            listed = ", ".join(f'"{name}"' for name in names)
            lines.append(f'- {listed} -> "{category.name}"')
        if len(lines) == EXAMPLES:
            break
    return "\n".join(lines) or NONE


def _split(nodes: Sequence[Node], most: int) -> list[Sequence[Node]]:
    """Split nodes into batches of nearly one size."""
    size = -(-len(nodes) // most)
    bounds = [len(nodes) * place // max(1, size) for place in range(size + 1)]
    return [nodes[begin:end] for begin, end in pairwise(bounds)]


# Describing


async def describe_categories(
    tools: Tools,
    draft: EditDraft,
    ids: Sequence[str],
    config: MnemisConfig,
    *,
    together: int = 1,
) -> None:
    """Describe categories of one layer, ``together`` so many in a call.

    A promotion is described as its child is, without a call. A category whose reply cannot be used
    keeps what was said of it. Raises what ``propose`` raises.
    """
    state, llm = draft.state, tools.llm
    proposals: dict[str, Proposal[Any]] = {}
    categories = [state.categories[identity] for identity in ids]
    asked = [category for category in categories if not category.is_promotion]

    async def work(some: Sequence[Category]) -> None:
        made = await _propose_descriptions(llm, state, some, config)
        proposals.update({category.id: made for category in some})
        layer = f"descriptions of layer {some[0].layer}"
        tools.observer.progress(layer, len(proposals), len(asked))

    parts = (asked[place : place + together] for place in range(0, len(asked), together))
    await for_each(parts, work, at_once=AT_ONCE)
    for category in categories:
        if category.is_promotion:
            child = state.node(category.children[0])
            if child.summary or child.tags:
                draft.put(Describe(category.id, child.summary, child.tags))
            continue
        proposal = proposals[category.id]
        if proposal.reply is None:
            draft.fail(proposal.stage, f"{category.id}: {proposal.problem}")
            continue
        said = getattr(proposal.reply, category.id, proposal.reply)
        tags = tuple(dict.fromkeys(filter(None, map(one_line, said.tags))))
        edit = Describe(category.id, one_line(said.summary), tags)
        draft.put(edit, call_key=proposal.call_key)


async def _propose_descriptions(
    llm: LLM, state: State, some: Sequence[Category], config: MnemisConfig
) -> Proposal[Any]:
    """Ask for the description of one category, or of several, each under its id."""
    most = CHILDREN if len(some) == 1 else FEWER_CHILDREN
    own = [_list_children(state, category, most) for category in some]
    budget = SUMMARY_TOKENS * len(some)
    fit = iter(await fit_texts(llm, [line for lines in own for line in lines], reserve=budget))
    nodes = ["\n".join(next(fit) for _ in lines) for lines in own]
    schema: type[BaseModel] = _Described
    if len(some) == 1:
        prompt = DESCRIBE.render(name=one_line(some[0].name), nodes=nodes[0])
    else:
        blocks = "\n\n".join(
            f"{one.id}, {one_line(one.name)}. Its nodes:\n{of}"
            for one, of in zip(some, nodes, strict=True)
        )
        prompt = DESCRIBE_SEVERAL.render(categories=blocks)
        fields: Any = {category.id: (_Described, ...) for category in some}
        schema = create_model("described", __base__=StrictReply, **fields)
    sampling = config.sampling(budget)
    return await propose(llm, prompt, schema, sampling=sampling, stage="describe_category")


def _list_children(state: State, category: Category, most: int) -> list[str]:
    """Return a line for each child; of many children, as many of the first as of the last."""
    nodes = [state.node(child) for child in category.children]
    if len(nodes) > most:
        nodes = [*nodes[: most // 2], *nodes[-most // 2 :]]
    return [one_line(f"- {node.name} [{', '.join(node.tags)}]: {node.summary}") for node in nodes]
