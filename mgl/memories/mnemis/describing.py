"""What a category is, from its children: a summary and tags. The paper prints no prompt for it.

A promotion is described as its child is, without a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from mgl.errors import ReplyInvalid
from mgl.graph.flight import each
from mgl.llm.base import LLM, Message
from mgl.llm.constraints import bounded
from mgl.llm.fitting import fitted
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import Failed, record
from mgl.memories.mnemis.state import Category, Describe, Edit, State, apply
from mgl.prompt import Prompt
from mgl.reading import flat
from mgl.store import EditRecord

__all__ = ["DESCRIBE", "describe"]

CHILDREN, TAGS, TOKENS, AT_ONCE = 30, 5, 200, 32

DESCRIBE: Final = Prompt(
    "mnemis.describe_category",
    source="ours, after Mnemis §2.2 and the definition of tags in Appendix E",
    text="""A category is described from the nodes that it holds.

Write a summary of one or two sentences that says what the nodes are and what they have in common, \
with the facts that matter most. Write tags: at most 5 descriptors of at most 3 words that capture \
what kind of nodes they are. Say nothing that the nodes do not say.

Answer in JSON:
{"summary": "...", "tags": ["...", "..."]}

The category: {name}
Its nodes:
{nodes}""",
    variables=("name", "nodes"),
)


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid")

    summary: Annotated[str, Field(min_length=1), bounded(320)]
    tags: Annotated[
        list[Annotated[str, Field(min_length=1), bounded(32)]],
        Field(min_length=1, max_length=TAGS),
    ]


async def describe(
    llm: LLM, state: State, changed: Sequence[str], config: MnemisConfig, *, step: int
) -> tuple[list[EditRecord], State]:
    """Describe some categories of one layer, many at once; the rows are in their order.

    Raises the EngineError family, but for ReplyInvalid: such a category keeps what was said of it.
    """
    made: dict[str, EditRecord | None] = {}
    edits: dict[str, Edit] = {}

    async def work(identity: str) -> None:
        category = state.categories[identity]
        if category.promoted:
            made[identity] = _as_its_child(state, category, edits, step)
            return
        lines = await fitted(llm, _lines(state, category), reserve=TOKENS)
        prompt = DESCRIBE.render(name=category.name, nodes="\n".join(lines))
        try:
            reply = await llm.complete(
                [Message("user", prompt)],
                _Described,
                sampling=config.sampling(TOKENS),
                stage="describe_category",
            )
        except ReplyInvalid as error:
            failed = Failed("describe_category", f"{identity}: {error.message}")
            made[identity] = record(step, failed, rejected="reply_invalid")
            return
        assert reply.parsed is not None
        tags = tuple(dict.fromkeys(filter(None, map(flat, reply.parsed.tags))))
        edit = edits[identity] = Describe(identity, flat(reply.parsed.summary), tags)
        made[identity] = record(step, edit, call_key=reply.call_key)

    await each(changed, work, at_once=AT_ONCE)
    for identity in changed:
        if identity in edits:
            state = apply(state, edits[identity])
    return [row for identity in changed if (row := made[identity]) is not None], state


def _as_its_child(
    state: State, category: Category, edits: dict[str, Edit], step: int
) -> EditRecord | None:
    child = state.node(category.children[0])
    if not child.summary and not child.tags:
        return None
    edit = edits[category.id] = Describe(category.id, child.summary, child.tags)
    return record(step, edit)


def _lines(state: State, category: Category) -> list[str]:
    """Its children; where they are many, as many of the first as of the last."""
    nodes = [state.node(child) for child in category.children]
    if len(nodes) > CHILDREN:
        nodes = [*nodes[: CHILDREN // 2], *nodes[-CHILDREN // 2 :]]
    return [flat(f"- {node.name} [{', '.join(node.tags)}]: {node.summary}") for node in nodes]
