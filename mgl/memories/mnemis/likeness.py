"""Nodes are grouped by how like they are, and a model says what each group is.

Ours, for models that cannot sort some dozens of nodes in one reply: where Appendix E has the model
decide what belongs together, here the embeddings of names and tags do (Ward's linkage), and each
group costs one short call. A group that is given the name of a category joins it. Where there are
categories, a node joins the one that it is likest to, without a call, if it is no less like it than
the least like of its children.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from mgl.errors import ReplyInvalid, UsageError
from mgl.llm.base import LLM, Message
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import max_chars
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import Failed, record
from mgl.memories.mnemis.layers import Forming, Node, refusals
from mgl.memories.mnemis.nodes import Category
from mgl.memories.mnemis.rules import Group, is_speaker, mended
from mgl.memories.mnemis.state import State
from mgl.observer import SILENT, Observer
from mgl.prompt import Prompt, one_line
from mgl.retrieval.base import Embedder
from mgl.store import EditRecord

__all__ = ["NAME_CATEGORY", "form_by_likeness", "grouped_as", "groups_of", "homes_of"]

MEMBERS, EXISTING, NAME_CHARS, TOKENS, CALLS = 12, 12, 32, 40, 32
MOST_AT_ONCE: Final = 2000
"""Nodes that are compared with each other; more are grouped in runs of so many."""

ROUNDING: Final = 1e-5

NAME_CATEGORY: Final = Prompt(
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


class _Named(BaseModel):
    model_config = ConfigDict(extra="forbid")

    category: Annotated[str, Field(min_length=1), max_chars(NAME_CHARS)]


async def form_by_likeness(
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
    """As ``categorise.form_layer``: the layer as it forms, and the rows of what could not be used.

    Raises the EngineError family, but for ReplyInvalid, and UsageError where scipy is missing.
    """
    forming = Forming(state, layer)
    together = [*nodes, *again]
    there = _there(state, layer)

    def work() -> tuple[list[int | None], list[list[int]]]:
        vectors = embedder.embed([_told(node) for node in together])
        own = [_told(state.node(child)) for category in there for child in category.children]
        ends = np.cumsum([len(category.children) for category in there])[:-1]
        homes = homes_of(vectors, np.split(embedder.embed(own), ends) if there else [])
        rest = [place for place, home in enumerate(homes) if home is None]
        groups = groups_of(vectors[rest], config.cluster)
        return homes, [[rest[place] for place in group] for group in groups if len(group) > 1]

    homes, asked = await asyncio.to_thread(work)
    for place, home in enumerate(homes):
        if home is not None and not is_speaker(together[place].name):
            forming.take([Group(there[home].name, (place,))], together, None)
    made: dict[int, tuple[str, str | None]] = {}
    failed: dict[int, str] = {}

    async def name(place: int) -> None:
        members = [together[index] for index in asked[place]]
        known = [draft.name for draft in forming.like(members, EXISTING)]
        prompt = NAME_CATEGORY.render(
            existing=", ".join(known) or "none",
            nodes="\n".join(f"- {_told(node)}" for node in members[:MEMBERS]),
        )
        try:
            reply = await llm.complete(
                [Message("user", prompt)],
                _Named,
                sampling=config.sampling(TOKENS),
                stage="name_category",
            )
        except ReplyInvalid as error:
            failed[place] = error.message
        else:
            made[place] = one_line(reply.parsed.category), reply.call_key
        observer.progress(f"categories of layer {layer}", len(made) + len(failed), len(asked))

    await for_each(range(len(asked)), name, at_once=CALLS)
    rows = [
        record(step, Failed("name_category", failed[place]), rejected="reply_invalid")
        for place in sorted(failed)
    ]
    proposed = [Group(made[place][0], tuple(asked[place])) for place in sorted(made)]
    calls: dict[str, str | None] = {}
    for group, place in zip(proposed, sorted(made), strict=True):
        calls.setdefault(group.key, made[place][1])
    names, offered = [node.name for node in together], frozenset(forming.offered)
    usable, refused = mended(proposed, names, offered)
    rows += refusals(refused, together, state, layer, step, calls)
    for group in usable:
        forming.take([group], together, calls.get(group.key))
    return forming, rows


def homes_of(vectors: NDArray[np.float32], held: Sequence[NDArray[np.float32]]) -> list[int | None]:
    """For each vector the place of the group that it is likest to, if it is no less like it than
    the least like of the group's own, ``held``. All are of unit length."""
    if not held or not len(vectors):
        return [None] * len(vectors)
    means = np.stack([own.mean(axis=0) for own in held])
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.finfo(np.float32).eps)
    floors = np.array([(own @ mean).min() for own, mean in zip(held, means, strict=True)])
    like = vectors @ means.T
    best = like.argmax(axis=1)
    return [
        int(place) if like[number, place] >= floors[place] - ROUNDING else None
        for number, place in enumerate(best)
    ]


def groups_of(vectors: NDArray[np.float32], size: int) -> list[list[int]]:
    """Vectors of unit length, shape (n, dims), in groups of ``size`` on average: their places, each
    in one group. UsageError where scipy is missing."""
    try:
        from scipy.cluster.hierarchy import fcluster, linkage
    except ImportError as error:
        raise UsageError(
            "grouping by likeness needs scipy", hint="python -m pip install 'mgl[retrieval]'"
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


def grouped_as(name: str, summary: str, tags: Sequence[str]) -> set[str]:
    """The texts under which nodes of this name and description are embedded here."""
    return {_line(name, about) for about in ("", ", ".join(tags), summary)}


def _there(state: State, layer: int) -> list[Category]:
    """The categories of a layer that are no promotions."""
    found = (each for each in state.layer(layer) if isinstance(each, Category))
    return [category for category in found if not category.promoted]


def _told(node: Node) -> str:
    tags = ", ".join(node.tags)
    if not tags and isinstance(node, Category):
        tags = node.summary
    return _line(node.name, tags)


def _line(name: str, about: str) -> str:
    return one_line(f"{name} ({about})" if about else name)
