"""What a category is, from its children: a summary and tags. The paper prints no prompt for it.

A promotion is described as its child is, without a call. Others are described in a call each, or
``together``, several in one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, create_model

from mgl.errors import ReplyInvalid
from mgl.llm.base import LLM, Message
from mgl.llm.concurrency import for_each
from mgl.llm.constraints import max_chars
from mgl.llm.prompting import fit_texts
from mgl.memories.mnemis.config import MnemisConfig
from mgl.memories.mnemis.edits import Failed, record
from mgl.memories.mnemis.nodes import Category
from mgl.memories.mnemis.state import Describe, State, replay
from mgl.observer import SILENT, Observer
from mgl.prompt import Prompt, one_line
from mgl.store import EditRecord

__all__ = ["DESCRIBE", "DESCRIBE_SEVERAL", "describe"]

CHILDREN, FEWER, TAGS, TOKENS, AT_ONCE = 30, 12, 5, 200, 32

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


DESCRIBE_SEVERAL: Final = Prompt(
    "mnemis.describe_categories",
    source="ours, as DESCRIBE: several categories in one call",
    text="""Categories are described, each from the nodes that it holds.

Write for each a summary of one or two sentences that says what its nodes are and what they have \
in common, with the facts that matter most. Write tags for each: at most 5 descriptors of at most \
3 words that capture what kind of nodes they are. Say nothing that the nodes do not say.

Answer in JSON, with the id of each category, in their order:
{"c...": {"summary": "...", "tags": ["...", "..."]}, ...}

{categories}""",
    variables=("categories",),
)


class _Described(BaseModel):
    model_config = ConfigDict(extra="forbid")

    summary: Annotated[str, Field(min_length=1), max_chars(320)]
    tags: Annotated[
        list[Annotated[str, Field(min_length=1), max_chars(32)]],
        Field(min_length=1, max_length=TAGS),
    ]


async def describe(
    llm: LLM,
    state: State,
    changed: Sequence[str],
    config: MnemisConfig,
    *,
    step: int,
    together: int = 1,
    observer: Observer = SILENT,
) -> tuple[list[EditRecord], State]:
    """Describe some categories of one layer, ``together`` so many in a call; the rows are in their
    order.

    Raises the EngineError family, but for ReplyInvalid: such a category keeps what was said of it.
    """
    made: dict[str, tuple[EditRecord, Describe | None]] = {}
    categories = [state.categories[identity] for identity in changed]
    asked = [category for category in categories if not category.promoted]

    async def work(some: Sequence[Category]) -> None:
        made.update(await _described(llm, state, some, config, step))
        stage = f"descriptions of layer {some[0].layer}"
        observer.progress(stage, len(made), len(asked))

    parts = (asked[place : place + together] for place in range(0, len(asked), together))
    await for_each(parts, work, at_once=AT_ONCE)
    rows: list[EditRecord] = []
    edits: list[Describe] = []
    for category in categories:
        if category.promoted:
            child = state.node(category.children[0])
            if not child.summary and not child.tags:
                continue
            edit = Describe(category.id, child.summary, child.tags)
            made[category.id] = record(step, edit), edit
        row, described = made[category.id]
        rows.append(row)
        edits += [] if described is None else [described]
    return rows, replay(edits, state)


async def _described(
    llm: LLM, state: State, some: Sequence[Category], config: MnemisConfig, step: int
) -> dict[str, tuple[EditRecord, Describe | None]]:
    """The row of each category, and its edit unless there is none to be had."""
    own = [_lines(state, category, CHILDREN if len(some) == 1 else FEWER) for category in some]
    budget = TOKENS * len(some)
    fit = iter(await fit_texts(llm, [line for lines in own for line in lines], reserve=budget))
    nodes = ["\n".join(next(fit) for _ in lines) for lines in own]
    if len(some) == 1:
        prompt = DESCRIBE.render(name=one_line(some[0].name), nodes=nodes[0])
    else:
        blocks = zip(some, nodes, strict=True)
        told = "\n\n".join(
            f"{one.id}, {one_line(one.name)}. Its nodes:\n{of}" for one, of in blocks
        )
        prompt = DESCRIBE_SEVERAL.render(categories=told)
    schema: type[BaseModel] = _Described
    if len(some) > 1:
        fields: Any = {category.id: (_Described, ...) for category in some}
        schema = create_model("described", __config__=ConfigDict(extra="forbid"), **fields)
    try:
        reply = await llm.complete(
            [Message("user", prompt)],
            schema,
            sampling=config.sampling(budget),
            stage="describe_category",
        )
    except ReplyInvalid as error:
        return {
            category.id: (
                record(
                    step,
                    Failed("describe_category", f"{category.id}: {error.message}"),
                    rejected="reply_invalid",
                ),
                None,
            )
            for category in some
        }
    made: dict[str, tuple[EditRecord, Describe | None]] = {}
    for category in some:
        said = reply.parsed if len(some) == 1 else getattr(reply.parsed, category.id)
        assert isinstance(said, _Described)
        tags = tuple(dict.fromkeys(filter(None, map(one_line, said.tags))))
        edit = Describe(category.id, one_line(said.summary), tags)
        made[category.id] = record(step, edit, call_key=reply.call_key), edit
    return made


def _lines(state: State, category: Category, most: int) -> list[str]:
    """Its children; where they are many, as many of the first as of the last."""
    nodes = [state.node(child) for child in category.children]
    if len(nodes) > most:
        nodes = [*nodes[: most // 2], *nodes[-most // 2 :]]
    return [one_line(f"- {node.name} [{', '.join(node.tags)}]: {node.summary}") for node in nodes]
