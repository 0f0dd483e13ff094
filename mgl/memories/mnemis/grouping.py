"""Which nodes a category of a layer holds: the model decides (Appendix E), or likeness does (ours).

Source: Mnemis §2.2, prompt in Appendix E. ``form_by_model`` asks about batches of nodes one after
the other, because each is shown the categories of those before it. A reply that breaks a rule
(``layers``) is told which, once; of the two replies the one that leaves fewer nodes out is used.

``form_by_likeness`` is for models that cannot sort some dozens of nodes in one reply: Ward's
linkage over the embeddings of names and tags groups the nodes, and a model only names each group. A
group that is given the name of a category joins it. An existing category takes a node without a
call if it is the most similar one, and the node is no less similar to it than the least similar of
its children.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, RootModel, TypeAdapter, WithJsonSchema, create_model

from mgl.errors import UsageError, install_hint
from mgl.llm.base import LLM, Message
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import index_set, max_chars
from mgl.llm.replies import REPAIR
from mgl.memories.base import Tools
from mgl.memories.mnemis.config import REPLY_TOKENS, MnemisConfig
from mgl.memories.mnemis.edits import EditDraft, PutCategory
from mgl.memories.mnemis.layers import (
    SHOWN_CHILDREN,
    CategoryDraft,
    Forming,
    Group,
    find_left_over,
    find_violations,
    is_first_person,
    repair_groups,
    summarize_node,
)
from mgl.memories.mnemis.prompts import CATEGORIES, CATEGORIES_SYSTEM, GUIDANCE, NAME_CATEGORY
from mgl.memories.mnemis.reading import propose_again
from mgl.memories.mnemis.state import Category, Node, State
from mgl.memories.propose import Proposal, StrictReply
from mgl.prompt import one_line

BATCH: Final = 40
"""Nodes categorised in one call; ours."""

CLUSTER: Final = 5
"""Nodes of a group on average, by likeness; ours."""

MOST_AT_ONCE: Final = 2000
"""Nodes that are compared with each other; more are grouped in runs of so many."""

NONE: Final = "None"
NAME_LENGTH, FEWEST, EXAMPLES = 48, 4, 5
MEMBERS, EXISTING, SHORT_NAME, NAME_TOKENS, AT_ONCE = 12, 12, 32, 40, 32
_ROUNDING: Final = 1e-5
_MARGIN: Final = 500
"""Tokens that a reply's repair and a model's own marks may take."""


class _Item(StrictReply):
    """Appendix E's output format. The indexes are checked by ``layers``."""

    category: Annotated[str, Field(min_length=1), max_chars(NAME_LENGTH)]
    indexes: list[int]


class _Named(StrictReply):
    category: Annotated[str, Field(min_length=1), max_chars(SHORT_NAME)]


# By the model


async def form_by_model(
    tools: Tools, draft: EditDraft, forming: Forming, config: MnemisConfig
) -> None:
    """Have the model put the nodes of a layer into categories, batch by batch.

    The draft gets rows of what could not be used. Raises what ``propose`` raises.
    """
    example = _example(draft.state, forming.layer - 1)
    batches = _split(forming.nodes, BATCH)
    for done, batch in enumerate(batches, start=1):
        messages = await _build_messages(tools.llm, batch, forming, example)
        failures = draft.state.failed_builds
        first = await _propose_groups(tools.llm, messages, batch, config, "categorise", failures)
        forming.asked += 1
        if first.reply is None:
            forming.failed += 1
            draft.fail(first.stage, first.problem)
        else:
            await _sort(tools.llm, draft, first, messages, batch, forming, config)
        tools.observer.progress(f"categories of layer {forming.layer}", done, len(batches))


async def _sort(
    llm: LLM,
    draft: EditDraft,
    first: Proposal[Any],
    messages: Sequence[Message],
    nodes: Sequence[Node],
    forming: Forming,
    config: MnemisConfig,
) -> None:
    """Use what a reply says of a batch; one that breaks rules is asked for again, once."""
    names, known = [node.name for node in nodes], forming.offered
    used, groups = first, _groups(first)
    kept, refused = repair_groups(groups, names, known)
    if problems := find_violations(groups, names, known, config.compression):
        reason = REPAIR.render(reason="\n".join(problems))
        messages = [*messages, Message("assistant", first.text), Message("user", reason)]
        second = await _propose_groups(llm, messages, nodes, config, "categorise_again")
        if second.reply is not None:
            again, refused_again = repair_groups(_groups(second), names, known)
            left, still_left = (find_left_over(each, names) for each in (kept, again))
            if len(still_left) <= len(left):
                used, kept, refused = second, again, refused_again
    for group, why in refused:
        _refuse(draft, group, why, nodes, forming.layer, used.call_key)
    for group in kept:
        forming.add(group, nodes, used.call_key)


def _refuse(
    draft: EditDraft,
    group: Group,
    reason: str,
    nodes: Sequence[Node],
    layer: int,
    call_key: str | None,
) -> None:
    children = tuple(nodes[index].id for index in group.indexes)
    edit = PutCategory(draft.state.next_id("c"), layer, group.name, children)
    draft.put(edit, rejected=reason, call_key=call_key)


async def _propose_groups(
    llm: LLM,
    messages: Sequence[Message],
    nodes: Sequence[Node],
    config: MnemisConfig,
    stage: str,
    failures: int = 0,
) -> Proposal[Any]:
    about = _schema(len(nodes)), config.sampling(REPLY_TOKENS), stage, failures
    return await propose_again(llm, messages, *about)


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
    llm: LLM, nodes: Sequence[Node], forming: Forming, example: str
) -> list[Message]:
    """All existing categories are shown; if they do not fit the context, the most similar."""
    content = "\n".join(f"{index}. {_line(node)}" for index, node in enumerate(nodes))
    guidance = GUIDANCE.render(
        layer=str(forming.layer), previous_layer=str(forming.layer - 1), prev_example=example
    )
    known = forming.find_similar(nodes)
    room = llm.context_tokens - 3 * REPLY_TOKENS - _MARGIN
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


# By likeness


async def form_by_likeness(
    tools: Tools, draft: EditDraft, forming: Forming, config: MnemisConfig
) -> None:
    """Do what ``form_by_model`` does. Raises UsageError if scipy is missing, too."""
    nodes = forming.nodes
    existing = [each for each in forming.existing if not each.is_promotion]
    homes, groups = await asyncio.to_thread(_compare, tools, draft.state, nodes, existing)
    for place, home in enumerate(homes):
        if home is not None and not is_first_person(nodes[place].name):
            forming.add(Group(existing[home].name, (place,)), nodes)
    proposals: dict[int, Proposal[_Named]] = {}

    async def name(place: int) -> None:
        members = [nodes[index] for index in groups[place]]
        known = [category.name for category in forming.find_similar(members, EXISTING)]
        prompt = NAME_CATEGORY.render(
            existing=", ".join(known) or "none",
            nodes="\n".join(f"- {_tagged_line(node)}" for node in members[:MEMBERS]),
        )
        sampling = config.sampling(NAME_TOKENS)
        proposals[place] = await propose_again(
            tools.llm, prompt, _Named, sampling, "name_category", draft.state.failed_builds
        )
        stage = f"categories of layer {forming.layer}"
        tools.observer.progress(stage, len(proposals), len(groups))

    await for_each(range(len(groups)), name, at_once=AT_ONCE)
    named: list[Group] = []
    keys: dict[str, str | None] = {}
    for place, proposal in sorted(proposals.items()):
        forming.asked += 1
        if proposal.reply is None:
            forming.failed += 1
            draft.fail(proposal.stage, proposal.problem)
            continue
        named.append(Group(one_line(proposal.reply.category), tuple(groups[place])))
        keys.setdefault(named[-1].key, proposal.call_key)
    usable, refused = repair_groups(named, [node.name for node in nodes], forming.offered)
    for group, why in refused:
        _refuse(draft, group, why, nodes, forming.layer, keys.get(group.key))
    for group in usable:
        forming.add(group, nodes, keys.get(group.key))


def find_homes(
    vectors: NDArray[np.float32], held: Sequence[NDArray[np.float32]]
) -> list[int | None]:
    """For each vector return the place of the group that takes it, or None.

    That is the most similar group, if the vector is no less similar to its mean than the least
    similar of the group's own, ``held``. All are of unit length.
    """
    if not held or not len(vectors):
        return [None] * len(vectors)
    means = np.stack([own.mean(axis=0) for own in held])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.finfo(np.float32).eps)
    floors = np.array([(own @ mean).min() for own, mean in zip(held, means, strict=True)])
    cosines = vectors @ means.T
    best = cosines.argmax(axis=1)
    return [
        int(place) if cosines[number, place] >= floors[place] - _ROUNDING else None
        for number, place in enumerate(best)
    ]


def group_vectors(vectors: NDArray[np.float32], size: int) -> list[list[int]]:
    """Group vectors of unit length, shape (n, dims), by ``size`` on average; returns their places.

    Raises UsageError if scipy is missing.
    """
    try:
        from scipy.cluster.hierarchy import fcluster, linkage
    except ImportError as error:
        raise UsageError(
            "grouping by likeness needs scipy", hint=install_hint("retrieval")
        ) from error
    groups: list[list[int]] = []
    for first in range(0, len(vectors), MOST_AT_ONCE):
        part = vectors[first : first + MOST_AT_ONCE]
        wanted = -(-len(part) // size)
        labels = [1] * len(part)
        if wanted > 1:
            labels = fcluster(linkage(part, "ward"), wanted, criterion="maxclust").tolist()
        held: dict[int, list[int]] = {}
        for place, label in enumerate(labels, first):
            held.setdefault(label, []).append(place)
        groups += held.values()
    return groups


def grouping_texts(name: str, summary: str, tags: Sequence[str]) -> set[str]:
    """Return the texts under which nodes of this name and description are embedded here."""
    return {_join(name, about) for about in ("", ", ".join(tags), summary)}


def _compare(
    tools: Tools,
    state: State,
    nodes: Sequence[Node],
    existing: Sequence[Category],
) -> tuple[list[int | None], list[list[int]]]:
    """Return the existing category that takes each node, and the groups of the others; blocks."""
    embedder = tools.required_embedder
    vectors = embedder.embed([_tagged_line(node) for node in nodes])
    own = [_tagged_line(state.node(child)) for category in existing for child in category.children]
    ends = np.cumsum([len(category.children) for category in existing])[:-1]
    homes = find_homes(vectors, np.split(embedder.embed(own), ends) if existing else [])
    rest = [place for place, home in enumerate(homes) if home is None]
    groups = group_vectors(vectors[rest], CLUSTER)
    return homes, [[rest[place] for place in group] for group in groups if len(group) > 1]


def _tagged_line(node: Node) -> str:
    tags = ", ".join(node.tags)
    if not tags and isinstance(node, Category):
        tags = node.summary
    return _join(node.name, tags)


def _join(name: str, about: str) -> str:
    return one_line(f"{name} ({about})" if about else name)
