"""Which nodes a category of a layer holds: the model decides (Appendix E).

Source: Mnemis §2.2, prompt in Appendix E. ``form_by_model`` asks about batches of nodes one after
the other, because each is shown the categories of those before it. A reply that breaks a rule
(``layers``) is told which, once; of the two replies the one that leaves fewer nodes out is used.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import Field, RootModel, TypeAdapter, WithJsonSchema, create_model

from mgl.llm.base import LLM, Message
from mgl.llm.constraints import index_set, max_chars
from mgl.llm.replies import REPAIR
from mgl.memories.base import Tools
from mgl.memories.mnemis.config import REPLY_TOKENS, MnemisConfig
from mgl.memories.mnemis.edits import EditDraft
from mgl.memories.mnemis.layers import (
    SHOWN_CHILDREN,
    CategoryDraft,
    CheckedReply,
    Forming,
    Group,
    check_groups,
    summarize_node,
)
from mgl.memories.mnemis.prompts import CATEGORIES, CATEGORIES_SYSTEM, GUIDANCE
from mgl.memories.mnemis.state import MnemisState, Node
from mgl.memories.propose import Proposal, StrictReply, propose
from mgl.prompt import one_line

Form = Callable[[Tools, EditDraft, Forming, MnemisConfig], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Grouping:
    """How nodes are put into the categories of a layer, and whether a model describes these.

    ``batch`` is how many nodes a call decides on; None where one may decide on all, and an update
    may need none.
    """

    form: Form
    batch: int | None
    is_described: bool = True


BATCH: Final = 40
"""Nodes categorised in one call; ours."""

NONE: Final = "None"
NAME_LENGTH, FEWEST, EXAMPLES = 48, 4, 5
_MARGIN: Final = 500
"""Tokens that a reply's repair and a model's own marks may take."""


class _Item(StrictReply):
    """Appendix E's output format. The indexes are checked by ``layers``."""

    category: Annotated[str, Field(min_length=1), max_chars(NAME_LENGTH)]
    indexes: list[int]


async def form_by_model(
    tools: Tools, draft: EditDraft, forming: Forming, config: MnemisConfig
) -> None:
    """Have the model put the nodes of a layer into categories, batch by batch.

    The draft gets rows of what could not be used. Raises what ``propose`` raises.
    """
    example = _example(draft.state, forming.layer - 1)
    batches = _split(forming.nodes, BATCH)
    for done, nodes in enumerate(batches, start=1):
        messages = await _build_messages(tools.llm, nodes, forming, example)
        checked = await _sort(tools.llm, draft, messages, nodes, forming.offered, config)
        forming.asked += 1
        if checked is None:
            forming.failed += 1
        else:
            forming.use(draft, checked, nodes)
        tools.observer.progress(f"categories of layer {forming.layer}", done, len(batches))


async def _sort(
    llm: LLM,
    draft: EditDraft,
    messages: Sequence[Message],
    nodes: Sequence[Node],
    known: Collection[str],
    config: MnemisConfig,
) -> CheckedReply | None:
    """Ask for the categories of a batch, again if the reply breaks rules; None if it failed."""
    names, sampling = [node.name for node in nodes], config.make_sampling(REPLY_TOKENS)

    async def ask(
        messages: Sequence[Message], stage: str, failures: int = 0
    ) -> tuple[Proposal[Any], CheckedReply | None]:
        schema = _schema(len(nodes))
        made = await propose(
            llm, messages, schema, sampling=sampling, stage=stage, failures=failures
        )
        if made.reply is None:
            return made, None
        key, items = made.call_key, made.reply.root
        groups = [Group(one_line(each.category), tuple(each.indexes), key) for each in items]
        return made, check_groups(groups, names, known, config.compression)

    first, checked = await ask(messages, "categorise", draft.state.failed_builds)
    if checked is None:
        draft.fail(first.stage, first.problem)
    elif checked.problems:
        reason = REPAIR.render(reason="\n".join(checked.problems))
        told = Message("assistant", first.text), Message("user", reason)
        _, again = await ask([*messages, *told], "categorise_again")
        if again is not None and again.left <= checked.left:
            return again
    return checked


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


def _example(state: MnemisState, layer: int) -> str:
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


BY_MODEL: Final = Grouping(form_by_model, BATCH)
