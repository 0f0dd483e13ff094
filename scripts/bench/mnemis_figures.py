"""What a Mnemis memory holds in figures, and the pairs of names that a reader judges.

A name that is written as a known one costs no decision and is no pair. The pairs kept apart are
entities of the last state whose names share a word, or are similar by their embeddings, as
candidates of §2.1 are; others were hardly ever shown to a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mgl.memories.mnemis.edits import VOCABULARY, AddEntity, Repeat
from mgl.memories.mnemis.entities import CANDIDATES, find_similar_before
from mgl.memories.mnemis.state import Mention, State
from mgl.retrieval.base import Embedder
from mgl.store import EditRecord
from mgl.types import Conversation

EXAMPLES: Final = 10
SHOWN_CHILDREN: Final = 6
_LISTED: Final = ("entities", "edges")

GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "base graph": frozenset(
        (
            *_LISTED,
            *(f"{stage}_reflection" for stage in _LISTED),
            *("entity_deduplication", "entity_summaries", "edge_deduplication"),
        )
    ),
    "hierarchy": frozenset(
        ("categorise", "name_category", "categorise_again", "describe_category")
    ),
    "selection": frozenset(("select",)),
}
"""The stages of calls as Table 3 groups them; answers are in none."""


def describe_memory(state: State, rows: Sequence[EditRecord]) -> list[str]:
    """Return counts, lost replies, why the hierarchy stopped, and some categories of each layer.

    ``rows`` are the whole log.
    """
    closed = sum(fact.invalid_at is not None for fact in state.facts.values())
    lost = Counter(
        (row.payload["what"].split()[0], row.reason) for row in rows if row.op == "reply"
    )
    stops = [row.payload["stopped"] for row in rows if row.op == "hierarchy"]
    lines = [
        f"{len(state.episodes)} episodes, {len(state.entities)} entities, "
        f"{len(state.facts)} facts, {closed} of them with an end",
        *(f"lost at {stage}: {count} ({reason})" for (stage, reason), count in lost.items()),
        f"the hierarchy stopped: {stops[-1] if stops else 'it was not built'}",
    ]
    for layer in range(1, state.top + 1):
        own = state.categories_of(layer)
        groups = [category for category in own if not category.is_promotion]
        lines.append(
            f"layer {layer}: {len(groups)} categories, {len(own) - len(groups)} promotions"
        )
        for category in groups[:EXAMPLES]:
            children = category.children[:SHOWN_CHILDREN]
            names = ", ".join(state.node(child).name for child in children)
            lines.append(f"  {category.name} <- {len(category.children)}: {names}")
    return lines


@dataclass(frozen=True, slots=True)
class Named:
    """A name, and where it is first said."""

    name: str
    mention: Mention


def find_merged(rows: Iterable[EditRecord]) -> list[tuple[Named, Named]]:
    """Return each entity with each other name that was decided to be its, in the log's order."""
    known: dict[str, Named] = {}
    found: list[tuple[Named, Named]] = []
    for row in rows:
        edit = VOCABULARY.edit(row)
        if isinstance(edit, AddEntity):
            known[edit.id] = Named(edit.name, edit.mention)
        elif isinstance(edit, Repeat) and edit.name is not None and edit.id in known:
            found.append((known[edit.id], Named(edit.name, edit.mention)))
    return found


async def find_kept_apart(embedder: Embedder, state: State) -> list[tuple[Named, Named]]:
    """Return similar entities, each with at most ``CANDIDATES`` of those before it."""
    named = [Named(each.name, each.mentions[0]) for each in state.entities.values()]
    before = await find_similar_before(embedder, [each.name for each in named], CANDIDATES)
    return [
        (named[place], other)
        for other, places in zip(named, before, strict=True)
        for place in places
    ]


def quote_name(conversation: Conversation, state: State, named: Named) -> str:
    """Return the sentence that a name stands in, with its speaker."""
    span = named.mention.span
    turns = state.episodes[named.mention.episode].turns
    number = max(n for n in turns if conversation.span(n).start <= span.start)
    return f"{conversation.turns[number].speaker}: {conversation.transcript.quote(span)}"
