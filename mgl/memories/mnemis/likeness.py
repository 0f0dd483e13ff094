"""Which nodes a category holds, by likeness; ours.

For models that cannot sort some dozens of nodes in one reply: Ward's linkage over the embeddings of
names and tags groups the nodes, and a model only names each group. A group that is given the name
of a category joins it. An existing category takes a node without a call if it is the most similar
one, and the node is no less similar to it than the least similar of its children.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from mgl.errors import UsageError, install_hint
from mgl.llm.calls import note_made_of
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import max_chars
from mgl.memories.base import Tools
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import EditDraft, turns_below
from mgl.memories.mnemis.grouping import Grouping
from mgl.memories.mnemis.layers import Forming, Group, check_groups, is_user
from mgl.memories.mnemis.state import Category, MnemisState, Node
from mgl.memories.propose import Proposal, StrictReply, propose
from mgl.prompt import Prompt, one_line

CLUSTER: Final = 5
"""Nodes of a group on average."""

MOST_AT_ONCE: Final = 2000
"""Nodes that are compared with each other; more are grouped in runs of so many."""

MEMBERS, EXISTING, SHORT_NAME, NAME_TOKENS, AT_ONCE = 12, 12, 32, 40, 32
_ROUNDING: Final = 1e-5

NAME_CATEGORY = Prompt(
    "mnemis.name_category",
    source="ours, after the rules of Appendix E",
    text="""Some nodes of a knowledge graph belong together. What kind of things are all of them? \
Name their category with a general noun, or a phrase of two or three words, without "and". Where \
one of the categories that are there says it, give its name.

Categories that are there: {existing}

The nodes:
{nodes}

{"category": "..."}""",
    variables=("existing", "nodes"),
)


class _Named(StrictReply):
    category: Annotated[str, Field(min_length=1), max_chars(SHORT_NAME)]


async def form_by_likeness(
    tools: Tools, draft: EditDraft, forming: Forming, config: MnemisConfig
) -> None:
    """Do what ``form_by_model`` does. Raises UsageError if scipy is missing, too."""
    nodes = forming.nodes
    existing = [each for each in forming.existing if not each.is_promotion]
    homes, groups = await asyncio.to_thread(_compare, tools, draft.state, nodes, existing)
    for place, home in enumerate(homes):
        if home is not None and not is_user(nodes[place].name):
            forming.add(Group(existing[home].name, (place,)), nodes)
    proposals: dict[int, Proposal[_Named]] = {}

    async def name(place: int) -> None:
        members = [nodes[index] for index in groups[place]]
        known = [category.name for category in forming.find_similar(members, EXISTING)]
        prompt = NAME_CATEGORY.render(
            existing=", ".join(known) or "none",
            nodes="\n".join(f"- {_tagged_line(node)}" for node in members[:MEMBERS]),
        )
        proposals[place] = await propose(
            tools.llm,
            prompt,
            _Named,
            sampling=config.make_sampling(NAME_TOKENS),
            stage="name_category",
            failures=draft.state.failed_builds,
        )
        stage = f"categories of layer {forming.layer}"
        tools.observer.progress(stage, len(proposals), len(groups))

    await for_each(range(len(groups)), name, at_once=AT_ONCE)
    made = [proposals[place] for place in range(len(groups))]
    named = [
        Group(one_line(each.reply.category), tuple(group), each.call_key)
        for group, each in zip(groups, made, strict=True)
        if each.reply is not None
    ]
    for each in made:
        if each.reply is None:
            draft.fail(each.stage, each.problem)
    forming.asked += len(made)
    forming.failed += len(made) - len(named)
    names = [node.name for node in nodes]
    forming.use(draft, check_groups(named, names, forming.offered, config.compression), nodes)


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


def _compare(
    tools: Tools,
    state: MnemisState,
    nodes: Sequence[Node],
    existing: Sequence[Category],
) -> tuple[list[int | None], list[list[int]]]:
    """Return the existing category that takes each node, and the groups of the others; blocks."""
    embedder = tools.required_embedder
    held = [state.node(child) for category in existing for child in category.children]
    made_of = {_tagged_line(node): turns_below(state, node.id) for node in (*nodes, *held)}
    with note_made_of(made_of):
        vectors = embedder.embed([_tagged_line(node) for node in nodes])
        own = embedder.embed([_tagged_line(node) for node in held])
    ends = np.cumsum([len(category.children) for category in existing])[:-1]
    homes = find_homes(vectors, np.split(own, ends) if existing else [])
    rest = [place for place, home in enumerate(homes) if home is None]
    groups = group_vectors(vectors[rest], CLUSTER)
    return homes, [[rest[place] for place in group] for group in groups if len(group) > 1]


def _tagged_line(node: Node) -> str:
    tags = ", ".join(node.tags)
    if not tags and isinstance(node, Category):
        tags = node.summary
    return one_line(f"{node.name} ({tags})" if tags else node.name)


BY_LIKENESS: Final = Grouping(form_by_likeness, None, is_described=False)
