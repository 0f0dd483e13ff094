"""What a memory holds, in figures and examples, and which stages of calls belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from mgl.memories.mnemis.state import State
from mgl.store import EditRecord

__all__ = ["GROUPS", "figures"]

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
"""The stages of a model's calls as Table 3 puts them together; answers are in none."""


def figures(state: State, rows: Sequence[EditRecord]) -> list[str]:
    """Counts, the replies that were lost, why the hierarchy stopped, and of each of its layers some
    categories with their first children. ``rows`` are the whole log."""
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
        own = [each for each in state.categories.values() if each.layer == layer]
        groups = [category for category in own if not category.promoted]
        lines.append(
            f"layer {layer}: {len(groups)} categories, {len(own) - len(groups)} promotions"
        )
        for category in groups[:EXAMPLES]:
            children = category.children[:SHOWN_CHILDREN]
            names = ", ".join(state.node(child).name for child in children)
            lines.append(f"  {category.name} <- {len(category.children)}: {names}")
    return lines
